"""Options of the encoder-only model: those of fairseq's RoBERTa, and further ones."""

import argparse
import dataclasses
from argparse import Namespace
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Tuple

from fairseq.models.roberta.model import RobertaModel, base_architecture
from fairseq.utils import get_available_activation_fns, safe_getattr
from omegaconf import OmegaConf, open_dict

from ..positions import SEGMENT_ENCODINGS
from ..system.errors import UserError
from .options import NestedConfig, PositionOptions, nested_config, unknown_choice, with_help

# Default maximum sequence length in tokens, that of BERT.
LONGEST = 512


@dataclass
class SentenceOptions(PositionOptions):
    """Options of the encoder-only model that RoBERTa does not have."""

    segment_encoding: str = with_help(
        "none",
        "encoding of segments (two sentences, or question and context): "
        f"{', '.join(SEGMENT_ENCODINGS)}",
    )
    num_segments: int = with_help(2, "number of segments")
    max_source_positions: Optional[int] = with_help(
        None,
        "maximum sequence length of the model in tokens, the size of its position tables "
        "(--max-positions, the limit of the task, may be smaller); default: --tokens-per-sample of "
        f"the task, or {LONGEST} if the task has no such option or --max-positions is given",
    )
    checkpoint_activations: bool = with_help(
        False, "recompute activations in the backward pass to save memory"
    )
    offload_activations: bool = with_help(
        False,
        "offload activations to the CPU until the backward pass; implies --checkpoint-activations",
    )


def _roberta_fields() -> Iterator[Tuple[str, Any, Any]]:
    """Dataclass fields of RoBERTa's options, which fairseq defines on an argument parser.

    Defaults are those of RoBERTa's base architecture.
    """
    parser = argparse.ArgumentParser(add_help=False)
    RobertaModel.add_args(parser)
    base = Namespace()
    base_architecture(base)
    for action in parser._actions:
        default = getattr(base, action.dest, action.default)
        kind: Any = action.type or str
        if action.nargs == 0:  # a switch
            kind, default = bool, bool(default)
        elif default is None:
            kind = Optional[kind]
        yield action.dest, kind, with_help(default, action.help)


DietRobertaConfig = dataclasses.make_dataclass(
    "DietRobertaConfig",
    _roberta_fields(),
    bases=(SentenceOptions,),
    namespace={"__module__": __name__, "__doc__": "All options of ``diet_roberta``, flat."},
)


@dataclass
class SentenceConfig(NestedConfig):
    """The nested configuration of an encoder-only model."""

    segment_encoding: str = "none"
    num_segments: int = 2

    @property
    def stacks(self) -> Tuple[str, ...]:
        return ("encoder",)


def plain_options(options: Any, task: Any = None) -> Namespace:
    """Parsed or restored options with all defaults: the fields of ``DietRobertaConfig``, and the
    options that RoBERTa's base architecture adds.

    ``task``: the task of the model; its ``--tokens-per-sample`` may be the maximum length.
    """
    given = {
        field.name: safe_getattr(options, field.name, field.default)
        for field in dataclasses.fields(DietRobertaConfig)
    }
    plain = Namespace(**given)
    longest = plain.max_source_positions
    if longest is None:
        longest = (not plain.max_positions and _tokens_per_sample(task)) or LONGEST
    plain.max_positions = plain.max_positions or longest
    if plain.encoder_layers_to_keep:
        plain.encoder_layers = len(plain.encoder_layers_to_keep.split(","))
    base_architecture(plain)
    plain.max_source_positions = longest
    plain.checkpoint_activations |= plain.offload_activations
    return plain


def _tokens_per_sample(task: Any) -> Optional[int]:
    """``--tokens-per-sample`` of ``task``, the default number of positions of fairseq's RoBERTa."""
    # Older tasks have ``args``.
    for options in (getattr(task, "cfg", None), getattr(task, "args", None)):
        if length := safe_getattr(options, "tokens_per_sample", None):
            return int(length)
    return None


def write_length(options: Any, longest: int) -> None:
    """Sets ``max_source_positions`` to ``longest`` in the options that a model was built from.

    Checkpoints store it, so that a task with another length restores the same model.
    """
    copies = [options]
    if OmegaConf.is_config(options):
        # For --arch diet_roberta fairseq passes a copy, whose parent is saved.
        root = options._get_parent()
        saved = None if root is None else root.get("model")
        copies += [] if saved is None else [saved]
    for copy in copies:
        with open_dict(copy) if OmegaConf.is_config(copy) else nullcontext():
            copy.max_source_positions = longest


def sentence_config(options: Namespace) -> SentenceConfig:
    """The checked configuration of the encoder.

    Raises :class:`UserError` with a message for every invalid option.
    """
    sizes = {
        f"decoder_{name}": getattr(options, f"encoder_{name}")  # never built
        for name in ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    }
    problems = []
    cfg: Optional[SentenceConfig] = None
    try:
        # RoBERTa's architecture enables options that would bypass the position encoding.
        given = {**vars(options), **sizes, "encoder_learned_pos": False}
        cfg = nested_config(Namespace(**given), SentenceConfig)
    except UserError as error:
        problems.append(str(error))
    if problems := [*problems, *_further_problems(options, cfg)]:
        raise UserError("; ".join(problems))
    assert cfg is not None
    # As in BERT, token embeddings are not scaled by sqrt(E), unless fixed vectors are added.
    cfg.no_scale_embedding = not cfg.encoding.fixed_input
    return cfg


def _further_problems(options: Namespace, cfg: Optional[SentenceConfig]) -> Iterator[str]:
    """A message for each further invalid option; ``cfg`` is None if others are invalid."""
    yield from unknown_choice(options, "segment_encoding", SEGMENT_ENCODINGS)
    if cfg is not None and options.segment_encoding == "per-head" and cfg.encoding.mixes_keys:
        yield (
            f"--segment-encoding per-head: the keys of {cfg.position_encoding} are mixed from "
            "tokens of all segments; use --segment-encoding input"
        )
    if options.position_in is not None:
        yield f"--position-in {options.position_in}: this model is encoder-only; leave it out"
    if options.num_segments < 1:
        yield f"--num-segments {options.num_segments}: must be at least 1"
    longest = options.max_source_positions
    if not 1 <= options.max_positions <= longest:
        yield (
            f"--max-positions {options.max_positions}: the model is built for {longest} tokens; "
            f"give --max-positions {longest} or less, or --max-source-positions as in pretraining"
        )
    for name in ("activation_fn", "pooler_activation_fn"):
        yield from unknown_choice(options, name, get_available_activation_fns())
    if options.mha_heads_to_keep != -1:
        yield "--mha-heads-to-keep: positions have a table for every head; leave it out"
