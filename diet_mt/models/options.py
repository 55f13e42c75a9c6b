"""Options of the translation model: fairseq's own, flattened, and ours.

fairseq's ``TransformerConfig`` is nested, and a nested configuration cannot be registered for the
command line: stock fairseq then silently ignores all ``--encoder-*`` flags, fairseq-fixed stops
inside hydra. The registered dataclass is therefore flat, made from fairseq's own fields, and
converted to the nested one when a model is built.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Collection, Iterator, List, Optional, Tuple, Type, TypeVar

from fairseq.dataclass import FairseqDataclass
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_config import (
    DecoderConfig,
    EncDecBaseConfig,
    QuantNoiseConfig,
)
from fairseq.utils import safe_getattr

from ..positions import (
    AT_INPUT,
    CROSS,
    EXTRAPOLATIONS,
    KINDS,
    NAMES,
    OPTIONS,
    REFUSE,
    Option,
    PositionEncoding,
    build_position,
    defaults_of,
)
from ..system.errors import UserError
from ..system.options import flag

ATTENTION_SCALES = ("head", "model")

# Options that would bypass the position encoding, and their replacements.
_REFUSED = {
    "no_token_positional_embeddings": "use --position-encoding none",
    "encoder_learned_pos": "use --position-encoding learned",
    "decoder_learned_pos": "use --position-encoding learned",
    "cross_self_attention": "source and target would share one matrix of keys; leave it out",
    "encoder_xformers_att_config": "xFormers' attention takes no positions; leave it out",
    "decoder_xformers_att_config": "xFormers' attention takes no positions; leave it out",
    "base_layers": "BASE layers have no attention of their own; leave it out",
}


def with_help(default: Any, help: Optional[str]) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass
class PlaceOptions(FairseqDataclass):
    """Position encoding and its sites. Encodings have names with dashes, as on the command line."""

    position_encoding: str = with_help(
        "diet-rel",
        "position encoding, inside attention (--position-in), at the input, or both: "
        f"{', '.join(sorted(NAMES))}",
    )
    position_in: Optional[str] = with_help(
        None,
        f"attention modules that use the encoding, separated by commas: {', '.join(KINDS)} "
        "(default: all that it supports)",
    )
    position_input: Optional[str] = with_help(
        None,
        "additional encoding at the input, with one inside attention: "
        f"{', '.join(AT_INPUT)} (default: that of the encoding); options that both have apply "
        "to --position-encoding only",
    )
    position_layers: Optional[str] = with_help(
        None,
        "layers with positions inside attention, by numbers from 0 and slices as in Python, for "
        "example 0:3,5 or ::2 (default: all)",
    )
    position_randomized: Optional[int] = with_help(
        None,
        "number of positions of which each training step uses a sorted random sample, so that "
        "training covers the positions of longer sentences",
    )
    attention_scale: str = with_help(
        "head", "divide q.k by the square root of the head size (head) or model width (model)"
    )


def _encoding_field(name: str, option: Option) -> Tuple[str, Any, Any]:
    """A dataclass field for an option of encodings; its help lists the encodings that have it."""
    encodings = ", ".join(
        encoding if default is None or default is False else f"{encoding}: {default}"
        for encoding, default in defaults_of(name).items()
    )
    choices = f": {', '.join(option.choices)}" if option.choices else ""
    kind: Any = bool if option.kind is bool else Optional[option.kind]
    default = False if option.kind is bool else None
    return option.attribute, kind, with_help(default, f"{option.meaning}{choices} ({encodings})")


# One field for each option of any encoding.
PositionOptions: Any = dataclasses.make_dataclass(
    "PositionOptions",
    [_encoding_field(name, option) for name, option in OPTIONS.items()],
    bases=(PlaceOptions,),
    namespace={"__module__": __name__, "__doc__": "Options of the position encoding."},
)


@dataclass
class TranslationOptions(PositionOptions):
    """Options of our translation model in addition to fairseq's."""

    compile: bool = with_help(
        False,
        "compile layers and loss with torch.compile, for training on a GPU: one graph per kind of "
        "layer, in the first steps, which take about a minute",
    )
    beyond_table: str = with_help(
        REFUSE,
        "rule for sentences longer than the position tables (--max-source-positions, "
        f"--max-target-positions): {', '.join(EXTRAPOLATIONS)}; decoding can override it with "
        "--model-overrides",
    )
    reset_positions: bool = with_help(
        False,
        "initialize the positions anew and load all other weights from a checkpoint with other "
        "positions (--finetune-from-model, or --restore-file with --reset-optimizer)",
    )


def _flat_fields() -> Iterator[Tuple[str, Any, Any]]:
    """Fields of fairseq's Transformer options, named as on its command line."""
    nested = {
        "encoder": EncDecBaseConfig,
        "decoder": DecoderConfig,
        "quant_noise": QuantNoiseConfig,
    }
    for outer in dataclasses.fields(TransformerConfig):
        inner = dataclasses.fields(nested[outer.name]) if outer.name in nested else [outer]
        prefix = f"{outer.name}_" if outer.name in nested else ""
        for source in inner:
            if source.name != "_name":
                yield _flat_field(source, prefix + source.name)


def _flat_field(source: Any, name: str) -> Tuple[str, Any, Any]:
    kind, default = source.type, source.default
    if name in ("decoder_input_dim", "decoder_output_dim"):
        kind, default = Optional[int], None  # the decoder's width, resolved when a model is built
    elif kind == Optional[List[int]]:
        kind, default = Optional[str], None  # fairseq splits it at the commas itself
    return name, kind, field(default=default, metadata=dict(source.metadata))


DietTransformerConfig = dataclasses.make_dataclass(
    "DietTransformerConfig",
    _flat_fields(),
    bases=(TranslationOptions,),
    namespace={"__module__": __name__, "__doc__": "All options of ``diet_transformer``, flat."},
)


@dataclass
class NestedConfig(TranslationOptions, TransformerConfig):
    """fairseq's nested configuration with our options, as encoder, decoder and layers read it.

    ``encoding`` is built once from the options, by :func:`nested_config`.
    """

    encoding: PositionEncoding = None  # type: ignore[assignment]

    @property
    def stacks(self) -> Tuple[str, ...]:
        """Names of the stacks of the model."""
        return "encoder", "decoder"

    def signatures(self) -> List[str]:
        """The signature of this configuration's weights, then equivalent ones of other models."""
        return [f"{text} scale={self.attention_scale}" for text in self.encoding.continues()]

    def attention_scale_of(self, stack: Any, kind: str) -> float:
        """Factor of q k^T in one kind of attention; ``stack``: options of encoder or decoder."""
        width = stack.embed_dim
        size = width if self.attention_scale == "model" else width // stack.attention_heads
        return float(size**-0.5 * self.encoding.content_scale_in(kind))


Config = TypeVar("Config", bound=NestedConfig)


def nested_config(options: Any, kind: Type[Config]) -> Config:
    """The checked configuration, of class ``kind``, of flat options, parsed or restored.

    Raises :class:`UserError` with a message for every invalid option.
    """
    cfg: Config = kind.from_namespace(options)
    problems = [
        f"{flag(name)}: {advice}"
        for name, advice in _REFUSED.items()
        if safe_getattr(options, name, None)
    ]
    problems += unknown_choice(cfg, "attention_scale", ATTENTION_SCALES)
    problems += unknown_choice(cfg, "beyond_table", EXTRAPOLATIONS)
    if cfg.beyond_table != REFUSE and cfg.position_randomized is not None:
        problems.append(f"--beyond-table {cfg.beyond_table}: not with --position-randomized")
    if cfg.no_cross_attention and CROSS in (cfg.position_in or ""):
        problems.append(
            f"--position-in {cfg.position_in}: there is no cross-attention; leave it out"
        )
    if cfg.position_layers and (cfg.encoder.layers_to_keep or cfg.decoder.layers_to_keep):
        problems.append(
            f"--position-layers {cfg.position_layers}: counts the layers before "
            "--*-layers-to-keep removes some; leave one of the options out"
        )
    token_dim = width = cfg.decoder.embed_dim
    try:
        cfg.encoding = build_position(
            cfg.position_encoding,
            cfg.position_in,
            cfg.position_input,
            cfg.position_randomized,
            cfg.position_layers,
            **{name: getattr(cfg, option.attribute) for name, option in OPTIONS.items()},
        )
        token_dim = cfg.encoding.token_dim(width)
        cfg.encoding.token_dim(cfg.encoder.embed_dim)
    except UserError as error:
        problems.append(str(error))
    tied = cfg.share_decoder_input_output_embed or cfg.share_all_embeddings
    # fairseq sets both to 512, its default width, before it reads the options.
    cfg.decoder.input_dim = safe_getattr(options, "decoder_input_dim", None) or width
    cfg.decoder.output_dim = safe_getattr(options, "decoder_output_dim", None) or (
        token_dim if tied else width
    )
    if tied and cfg.decoder.output_dim != token_dim:
        problems.append(
            f"--decoder-output-dim {cfg.decoder.output_dim}: embeddings tied to the output are "
            f"{token_dim} wide; leave one of the options out"
        )
    if problems := [*_size_problems(cfg), *problems]:
        raise UserError("; ".join(problems))
    cfg.activation_fn = str(cfg.activation_fn)  # from a file: an enum that cannot be pickled
    cfg.no_token_positional_embeddings = True  # positions come from cfg.encoding alone
    return cfg


def unknown_choice(options: Any, name: str, known: Collection[str]) -> Iterator[str]:
    """A message if the value of the option ``name`` is not in ``known``."""
    value = str(getattr(options, name))
    if value not in known:
        yield f"{flag(name)} {value}: choose from {', '.join(known)}"


def _size_problems(cfg: NestedConfig) -> Iterator[str]:
    """A message for each invalid size and dropout probability."""
    lengths = ("max_source_positions", "max_target_positions")[: len(cfg.stacks)]
    sizes = {flag(name): getattr(cfg, name) for name in lengths}
    longest = max(sizes.values())
    if cfg.position_randomized is not None and cfg.position_randomized < longest:
        yield (
            f"--position-randomized {cfg.position_randomized}: must be at least as many as the "
            f"{longest} positions of {' and '.join(sizes)}"
        )
    for side in cfg.stacks:
        stack = getattr(cfg, side)
        for name in ("layers", "embed_dim", "ffn_embed_dim", "attention_heads"):
            sizes[flag(f"{side}_{name}")] = getattr(stack, name)
        width, heads = stack.embed_dim, stack.attention_heads
        if heads > 0 and width % heads:
            yield f"--{side}-embed-dim {width}: not a multiple of --{side}-attention-heads {heads}"
    for option, size in sizes.items():
        if size < 1:
            yield f"{option} {size}: must be at least 1"
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        value = getattr(cfg, name)
        if not (isinstance(value, (int, float)) and 0 <= value <= 1):
            yield f"{flag(name)} {value}: must be 0 to 1"
