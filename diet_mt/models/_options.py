"""Options of the translation model: fairseq's own, flattened, and ours.

fairseq's ``TransformerConfig`` is nested, and a nested configuration cannot be registered for the
command line: stock fairseq then ignores every ``--encoder-*`` flag without a word, fairseq-fixed
stops inside hydra. The registered dataclass is therefore flat, made from fairseq's own fields, and
turned into the nested one when a model is built.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple, Type, TypeVar

from fairseq.dataclass import FairseqDataclass
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_config import (
    DecoderConfig,
    EncDecBaseConfig,
    QuantNoiseConfig,
)
from fairseq.utils import safe_getattr

from ..errors import UserError
from ..positions import (
    AT_INPUT,
    BEYOND,
    FLAGS,
    KINDS,
    NAMES,
    REFUSE,
    SHARING,
    PositionEncoding,
    build_position,
)

ATTENTION_SCALES = ("head", "model")

# What would lead positions past the one path that carries them, and what to use instead.
_REFUSED = {
    "no_token_positional_embeddings": "use --position-encoding none",
    "encoder_learned_pos": "use --position-encoding learned",
    "decoder_learned_pos": "use --position-encoding learned",
    "cross_self_attention": "source and target would share one matrix of keys; leave it out",
    "encoder_xformers_att_config": "xFormers' attention takes no positions; leave it out",
    "decoder_xformers_att_config": "xFormers' attention takes no positions; leave it out",
    "base_layers": "BASE layers have no attention of their own; leave it out",
}


@dataclass
class PositionOptions(FairseqDataclass):
    """Where position information goes. Names as on the command line, with dashes."""

    position_encoding: str = field(
        default="diet-rel",
        metadata={
            "help": "position encoding, in the attention where it acts (--position-in), at the "
            f"input, or both: {', '.join(sorted(NAMES))}"
        },
    )
    position_in: Optional[str] = field(
        default=None,
        metadata={
            "help": "kinds of attention that it acts in, separated by commas: "
            f"{', '.join(KINDS)} (default: all that it is defined for)"
        },
    )
    position_input: Optional[str] = field(
        default=None,
        metadata={
            "help": "what is added to the token embeddings beside an encoding inside attention: "
            f"{', '.join(AT_INPUT)} (default: the encoding's own); an option that both have is "
            "--position-encoding's"
        },
    )
    position_randomized: Optional[int] = field(
        default=None,
        metadata={
            "help": "tokens stand at a random choice of so many positions, sorted, drawn anew in "
            "every step of training, so that it sees those of longer sentences"
        },
    )
    position_sharing: Optional[str] = field(
        default=None,
        metadata={
            "help": f"who shares the tables of a per-head encoding: {', '.join(SHARING)} "
            "(default: the encoding's own)"
        },
    )
    position_rank: Optional[int] = field(
        default=None,
        metadata={
            "help": "rank of the position tables of diet-abs and diet-abs-lin (default: the head "
            "size); width of the positions of concat (default: an eighth of the model's)"
        },
    )
    position_clip: Optional[int] = field(
        default=None,
        metadata={"help": "largest distance that shaw and deberta tell apart (default: 16, 512)"},
    )
    position_values: bool = field(
        default=False,
        metadata={"help": "shaw also adds vectors of its distances to the values"},
    )
    position_buckets: Optional[int] = field(
        default=None,
        metadata={"help": "buckets of distances of t5 and tupe-rel (default: 32)"},
    )
    position_max_distance: Optional[int] = field(
        default=None,
        metadata={
            "help": "distance from which on t5 and tupe-rel have one last bucket (default: 128)"
        },
    )
    linformer_k: Optional[int] = field(
        default=None,
        metadata={
            "help": "keys and values that linformer and diet-abs-lin mix a sentence down to, in "
            "the encoder (default: 32); decoder and cross-attention then are those of learned, or "
            "of diet-abs for diet-abs-lin"
        },
    )
    position_kernel: Optional[str] = field(
        default=None,
        metadata={
            "help": "how the weight of a key falls with its distance in kerple: log or power "
            "(default: log)"
        },
    )
    position_shift: Optional[int] = field(
        default=None,
        metadata={"help": "largest shift of a sentence that shape draws in training (default 500)"},
    )
    position_global_shift: Optional[float] = field(
        default=None,
        metadata={"help": "largest shift of a sentence that cape draws in training (default: 5.0)"},
    )
    position_local_shift: Optional[float] = field(
        default=None,
        metadata={"help": "largest shift of a token that cape draws in training (default: 0.5)"},
    )
    position_global_scale: Optional[float] = field(
        default=None,
        metadata={
            "help": "largest factor by which cape stretches a sentence in training (default: 1.03)"
        },
    )
    position_scaling: Optional[str] = field(
        default=None,
        metadata={
            "help": "how rotary turns more slowly, for sentences longer than in training: linear, "
            "ntk or yarn"
        },
    )
    position_scaling_factor: Optional[float] = field(
        default=None,
        metadata={"help": "how many times as long sentences become, for --position-scaling"},
    )
    position_trained_length: Optional[int] = field(
        default=None,
        metadata={"help": "tokens in the longest sentences of training, for yarn"},
    )
    attention_scale: str = field(
        default="head",
        metadata={
            "help": "divide q.k by the square root of the head size (head) or model width (model)"
        },
    )


@dataclass
class TranslationOptions(PositionOptions):
    """What our translation model has beside fairseq's options."""

    beyond_table: str = field(
        default=REFUSE,
        metadata={
            "help": "what tables of positions say of sentences that are longer than they "
            f"(--max-source-positions, --max-target-positions): {', '.join(BEYOND)}; also when "
            "decoding, in --model-overrides"
        },
    )


def _flat_fields() -> List[Tuple[str, Any, Any]]:
    """fairseq's Transformer options under the names that its command line gives them."""
    nested = {
        "encoder": EncDecBaseConfig,
        "decoder": DecoderConfig,
        "quant_noise": QuantNoiseConfig,
    }
    flat: List[Tuple[str, Any, Any]] = []
    for outer in dataclasses.fields(TransformerConfig):
        inner = nested.get(outer.name)
        if inner is None:
            flat.append(_flat_field(outer, outer.name))
        else:
            flat += [
                _flat_field(f, f"{outer.name}_{f.name}")
                for f in dataclasses.fields(inner)
                if f.name != "_name"
            ]
    return [entry for entry in flat if entry[0] != "_name"]


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
        """Those that are built."""
        return "encoder", "decoder"

    def signatures(self) -> List[str]:
        """What the weights of a model with this configuration mean, in words; behind it, those of
        other models that mean the same.
        """
        return [f"{text} scale={self.attention_scale}" for text in self.encoding.continues()]

    def attention_scale_of(self, stack: Any, kind: str) -> float:
        """Factor of q k^T in one kind of attention of ``stack``, the encoder's or decoder's part of
        this configuration.
        """
        width = stack.embed_dim
        size = width if self.attention_scale == "model" else width // stack.attention_heads
        return float(size**-0.5 * self.encoding.content_scale_in(kind))


Config = TypeVar("Config", bound=NestedConfig)


def nested_config(options: Any, kind: Type[Config]) -> Config:
    """Flat options, parsed or restored -> the checked configuration of a model, of class ``kind``.

    Raises :class:`UserError` naming every invalid option.
    """
    cfg: Config = kind.from_namespace(options)
    problems = [
        f"--{name.replace('_', '-')}: {why}"
        for name, why in _REFUSED.items()
        if safe_getattr(options, name, None)
    ]
    if cfg.attention_scale not in ATTENTION_SCALES:
        problems.append(
            f"--attention-scale {cfg.attention_scale}: choose from {', '.join(ATTENTION_SCALES)}"
        )
    if cfg.beyond_table not in BEYOND:
        problems.append(f"--beyond-table {cfg.beyond_table}: choose from {', '.join(BEYOND)}")
    elif cfg.beyond_table != REFUSE and cfg.position_randomized is not None:
        problems.append(f"--beyond-table {cfg.beyond_table}: not with --position-randomized")
    words = width = cfg.decoder.embed_dim
    try:
        cfg.encoding = build_position(
            cfg.position_encoding,
            cfg.position_in,
            cfg.position_input,
            cfg.position_randomized,
            **_position_options(cfg),
        )
        words = cfg.encoding.token_dim(width)
        cfg.encoding.token_dim(cfg.encoder.embed_dim)
    except UserError as error:
        problems.append(str(error))
    tied = cfg.share_decoder_input_output_embed or cfg.share_all_embeddings
    # fairseq settles these two before it reads the width, at 512.
    cfg.decoder.input_dim = safe_getattr(options, "decoder_input_dim", None) or width
    cfg.decoder.output_dim = safe_getattr(options, "decoder_output_dim", None) or (
        words if tied else width
    )
    if tied and cfg.decoder.output_dim != words:
        problems.append(
            f"--decoder-output-dim {cfg.decoder.output_dim}: embeddings tied to the output are "
            f"{words} wide; leave one of the options out"
        )
    problems = _size_problems(cfg) + problems
    if problems:
        raise UserError("; ".join(problems))
    cfg.activation_fn = str(cfg.activation_fn)  # from a file: an enum that cannot be pickled
    cfg.no_token_positional_embeddings = True  # positions come from cfg.encoding alone
    return cfg


def _position_options(cfg: NestedConfig) -> Dict[str, Any]:
    """The options of the encodings by the names of their fields."""
    return {name: getattr(cfg, flag[2:].replace("-", "_")) for name, flag in FLAGS.items()}


def _size_problems(cfg: NestedConfig) -> List[str]:
    """A sentence for each invalid size."""
    longest = ("max_source_positions", "max_target_positions")[: len(cfg.stacks)]
    sizes = {f"--{name.replace('_', '-')}": getattr(cfg, name) for name in longest}
    problems = []
    if cfg.position_randomized is not None and cfg.position_randomized < max(sizes.values()):
        problems.append(
            f"--position-randomized {cfg.position_randomized}: must be at least as many as the "
            f"{max(sizes.values())} positions of {' and '.join(sizes)}"
        )
    for side in cfg.stacks:
        stack = getattr(cfg, side)
        width, heads = stack.embed_dim, stack.attention_heads
        sizes[f"--{side}-layers"] = stack.layers
        sizes[f"--{side}-embed-dim"] = width
        sizes[f"--{side}-ffn-embed-dim"] = stack.ffn_embed_dim
        sizes[f"--{side}-attention-heads"] = heads
        if heads > 0 and width % heads:
            problems.append(
                f"--{side}-embed-dim {width} is not a multiple of --{side}-attention-heads {heads}"
            )
    return [
        f"{option} {size}: must be at least 1" for option, size in sizes.items() if size < 1
    ] + problems
