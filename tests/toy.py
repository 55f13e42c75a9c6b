"""Small models, sentences and batches that the tests share.

Sizes are uneven on purpose: within a stack no two of batch, heads, length, head size, width and
layers are equal, and encoder and decoder differ, so a swapped axis or a size taken from the wrong
stack cannot pass.

    encoder  B 5, H 3, S 7, D 4, E 12, L 2, n_S 11
    decoder  B 5, H 2, T 6, D 8, E 16, L 3, n_T 10
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from torch import Tensor, nn

from diet_mt.layers.multihead import AttentionCall, PositionalAttention
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import NAMES, SHARING, AttentionPositions, InputPositions, build_position
from diet_mt.positions import OPTIONS as POSITION_OPTIONS
from diet_mt.positions.terms import NO_TERMS
from diet_mt.system.errors import UserError

from .positions.cases import ALL as ROWS
from .positions.cases import FORMS

BOS, PAD, EOS, UNK, FIRST_WORD = 0, 1, 2, 3, 4
WORDS = 40

SIZES: dict[str, Any] = {
    "encoder_layers": 2,
    "encoder_embed_dim": 12,
    "encoder_ffn_embed_dim": 14,
    "encoder_attention_heads": 3,
    "decoder_layers": 3,
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 20,
    "decoder_attention_heads": 2,
    "max_source_positions": 11,
    "max_target_positions": 10,
    "dropout": 0.0,
}
# Both stacks alike, for options such as shared embeddings that ask for it.
SAME_WIDTH = {"encoder_embed_dim": 16, "encoder_attention_heads": 2}
# Small enough to matter in sentences of 7 tokens; nothing is drawn at random in training.
OPTIONS = {name: dict(case.toy) for name, case in ROWS.items()}
# Their positions end nowhere; those of all others where their tables do.
UNLIMITED = {name for name, case in ROWS.items() if not case.limited}
# Encodings without positions, and those that draw positions of their own.
NOT_RANDOMIZED = {"none", "shape", "cape"}
# One encoding of each kind, where the kind matters and not the encoding: a table in the logits, a
# product of factors, vectors on keys and values, turned keys, mixed keys, columns of the input.
KINDS_OF_ENCODING = ("diet-rel", "diet-abs", "shaw", "rotary", "linformer", "concat")
PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}

SOURCE_LENGTHS = (7, 3, 5, 1, 6)
TARGET_LENGTHS = (4, 6, 2, 5, 3)

# The three kinds of attention, as positions know them.
KINDS = ("encoder", "decoder", "cross")


def encoding_of(name: str) -> str:
    """The encoding of which ``name`` is a form, or itself."""
    return FORMS[name].of if name in FORMS else name


def options_by_field(name: str) -> dict[str, Any]:
    """The options of the toy models by field, as ``build_position`` takes them."""
    given = OPTIONS[name]
    options = POSITION_OPTIONS.items()
    return {field: given[own.attribute] for field, own in options if own.attribute in given}


def sharing_modes(encoding: str) -> list[str | None]:
    """Every way of sharing that ``encoding`` takes; [None] where it has nothing to share."""
    modes: list[str | None] = []
    for mode in SHARING:
        try:
            build_position(encoding_of(encoding), sharing=mode, **options_by_field(encoding))
        except UserError:
            continue
        modes.append(mode)
    return modes or [None]


def without_weights(encoding: str) -> dict[str, Any]:
    """Options with which it asks no attention for its weights, which no fused kernel gives."""
    return {"position_values": False} if encoding == "shaw" else {}


ENCODINGS = [*sorted(NAMES), *FORMS]
# (encoding, sharing) for all that is registered, and their forms.
CASES: list[tuple[str, str | None]] = [
    (encoding, mode) for encoding in ENCODINGS for mode in sharing_modes(encoding)
]


def name_of(encoding: str, sharing: str | None) -> str:
    """``diet-rel_head-wise``: the name of a case in test ids and golden files."""
    return encoding if sharing is None else f"{encoding}_{sharing}"


# Every encoding once, with each way of sharing in turn.
ONE_EACH: list[tuple[str, str | None]] = [
    (encoding, modes[number % len(modes)])
    for number, encoding in enumerate(ENCODINGS)
    for modes in [sharing_modes(encoding)]
]


def _cases(chosen: list[tuple[str, str | None]]) -> pytest.MarkDecorator:
    params = [pytest.param(*case, id=name_of(*case)) for case in chosen]
    return pytest.mark.parametrize(("encoding", "sharing"), params)


# They give a test the arguments ``encoding`` and ``sharing``: where it matters which table a layer
# and a head read, where it does not, and where one of each kind would fail as well.
every_encoding, each_encoding = _cases(CASES), _cases(ONE_EACH)
# Those inside attention.
each_inside = _cases([case for case in ONE_EACH if ROWS[case[0]].acts_in])
each_kind = _cases([case for case in ONE_EACH if case[0] in KINDS_OF_ENCODING])


def dictionary(words: int = WORDS) -> Dictionary:
    """fairseq's four special symbols and ``words`` words."""
    symbols = Dictionary()
    for number in range(words):
        symbols.add_symbol(f"word{number}")
    return symbols


class ToyTask:
    """What a model asks of a translation task: two dictionaries, here the same one."""

    def __init__(self, words: int = WORDS) -> None:
        self.source_dictionary = self.target_dictionary = dictionary(words)


def options(encoding: str, sharing: str | None = None, **changes: Any) -> Namespace:
    """Options as they come from the command line."""
    own = {"position_encoding": encoding_of(encoding), "position_sharing": sharing}
    return Namespace(**{**SIZES, **OPTIONS.get(encoding, {}), **own, **changes})


def build(
    encoding: str,
    sharing: str | None = None,
    *,
    seed: int = 1,
    tables: float | None = 0.7,
    **changes: Any,
) -> DietTransformerModel:
    """A float64 model in training mode, without dropout.

    ``tables``: standard deviation of the entries of all position tables, large enough to be seen
    in every output; None leaves the initial values. ``changes``: further options.
    """
    torch.manual_seed(seed)
    model = DietTransformerModel.build_model(options(encoding, sharing, **changes), ToyTask())
    if tables is not None:
        for table in position_parameters(model).values():
            nn.init.normal_(table, std=tables)
    return model.double()


def position_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of all position encodings in ``model``, by their full names."""
    return parameters_of(model, AttentionPositions, InputPositions)


def parameters_of(model: nn.Module, *kinds: type[nn.Module]) -> dict[str, nn.Parameter]:
    """The parameters of all modules of these kinds in ``model``, by their full names."""
    return {
        f"{path}.{name}": parameter
        for path, module in model.named_modules()
        if isinstance(module, kinds)
        for name, parameter in module.named_parameters()
    }


def copy_content_weights(source: nn.Module, target: nn.Module) -> None:
    """Copies every parameter that is not of a position encoding.

    Word vectors of ``source`` may be narrower, as beside positions; ``target`` gets zeros there.
    """
    theirs, ours = dict(source.named_parameters()), dict(target.named_parameters())
    skipped = position_parameters(source).keys() | position_parameters(target).keys()
    assert theirs.keys() - skipped == ours.keys() - skipped
    with torch.no_grad():
        for name in ours.keys() - skipped:
            missing = ours[name].size(-1) - theirs[name].size(-1)
            assert missing == 0 or name.endswith("embed_tokens.weight")
            ours[name].copy_(F.pad(theirs[name], (0, missing)))


def sources(lengths: Sequence[int] = SOURCE_LENGTHS, seed: int = 3) -> list[list[int]]:
    """Random source sentences of ``lengths`` tokens, the last of them the end mark."""
    generator = torch.Generator().manual_seed(seed)
    return [[*_words(length - 1, generator), EOS] for length in lengths]


def targets(lengths: Sequence[int] = TARGET_LENGTHS, seed: int = 4) -> list[list[int]]:
    """Random decoder inputs of ``lengths`` tokens, the first of them the end mark."""
    generator = torch.Generator().manual_seed(seed)
    return [[EOS, *_words(length - 1, generator)] for length in lengths]


def _words(count: int, generator: torch.Generator) -> list[int]:
    return torch.randint(FIRST_WORD, FIRST_WORD + WORDS, (count,), generator=generator).tolist()


def collate(rows: Sequence[Sequence[int]], side: str = "right", width: int | None = None) -> Tensor:
    """Sentences -> (B, T) tokens, padded on ``side`` to the longest or to ``width``."""
    width = width or max(len(row) for row in rows)
    batch = torch.full((len(rows), width), PAD)
    for number, row in enumerate(rows):
        start = width - len(row) if side == "left" else 0
        batch[number, start : start + len(row)] = torch.tensor(row)
    return batch


def real(values: Tensor, rows: Sequence[Sequence[int]], side: str = "right") -> list[Tensor]:
    """``values`` (B, T, ...) of a batch padded on ``side`` -> the real tokens of each row."""
    width = values.size(1)
    if side == "left":
        return [row[width - len(tokens) :] for row, tokens in zip(values, rows, strict=True)]
    return [row[: len(tokens)] for row, tokens in zip(values, rows, strict=True)]


@dataclass(frozen=True)
class Call:
    """One call of an attention module: what went in and out.

    ``query`` (T, B, E), ``key`` (S, B', E'), ``output`` (T, B, E), ``weights`` (B, H, T, S) where
    they were asked for, or None.
    """

    module: PositionalAttention
    query: Tensor
    key: Tensor
    output: Tensor
    weights: Tensor | None


@contextmanager
def attention_calls(model: Any) -> Iterator[dict[tuple[str, int], Call]]:
    """Records the last call of every attention module, by kind and number of the layer."""
    calls: dict[tuple[str, int], Call] = {}
    hooks = []
    for (kind, layer), module in attention_modules(model).items():

        def keep(module: Any, given: Any, out: Any, place: Any = (kind, layer)) -> None:
            query, source, _ = given
            key = query if source is None else source
            calls[place] = Call(module, query, key, out[0], out[1])

        hooks.append(module.register_forward_hook(keep))
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def times_computed(model: nn.Module) -> Iterator[dict[str, int]]:
    """How often every attention module of ``model`` was called, by its name."""
    times: dict[str, int] = {}
    hooks = []
    for path, module in model.named_modules():
        if isinstance(module, PositionalAttention):
            times[path] = 0

            def count(*_: Any, path: str = path) -> None:
                times[path] += 1

            hooks.append(module.register_forward_pre_hook(count))
    try:
        yield times
    finally:
        for hook in hooks:
            hook.remove()


def attention_modules(model: Any) -> dict[tuple[str, int], PositionalAttention]:
    """The attention modules of a model, or an encoder alone, by kind and number of the layer."""
    modules = {}
    encoder = getattr(model.encoder, "sentence_encoder", model.encoder)
    for number, layer in enumerate(encoder.layers.children()):
        modules["encoder", number] = layer.self_attn
    decoder = model.decoder.layers.children() if encoder is model.encoder else ()
    for number, layer in enumerate(decoder):
        modules["decoder", number] = layer.self_attn
        if layer.encoder_attn is not None:
            modules["cross", number] = layer.encoder_attn
    return modules


def attention_positions(model: DietTransformerModel, kind: str) -> AttentionPositions | None:
    """What the encoding does inside attention of ``kind``, or None."""
    stack = model.encoder if kind == "encoder" else model.decoder
    return stack.encoder_attn_positions if kind == "cross" else stack.self_attn_positions


class AttentionProbe(nn.Module):
    """One attention module of a built model with its positions, as a function of tensors."""

    def __init__(self, model: DietTransformerModel, kind: str, layer: int) -> None:
        super().__init__()
        self.attention = attention_modules(model)[kind, layer]
        self.positions = attention_positions(model, kind)
        self.added = (model.encoder if kind == "encoder" else model.decoder).embed_positions
        self.layer = layer

    def forward(self, query: Tensor, source: Tensor, mask: Tensor) -> Tensor:
        """``query`` (T, B, E) from position 0 on, ``source`` (S, B, E') -> (T, B, E).

        ``mask``: (B, S), True at padding. Self-attention reads its keys from ``query``.
        """
        if self.added is not None:
            query = query + self.added.rows(range(query.size(0))).transpose(0, 1)
        positions = NO_TERMS
        if self.positions is not None:
            terms = self.positions.for_layers(range(query.size(0)), range(source.size(0)))
            positions = terms[self.layer]
        out: Tensor = self.attention(query, source, AttentionCall(positions, mask))[0]
        return out


# float64; another batch or kernel adds the same numbers in another order.
ROUNDING = 1e-10


def close(actual: Tensor, expected: Tensor) -> None:
    """Fails unless both have one shape and, up to rounding in float64, one content."""
    assert actual.shape == expected.shape
    torch.testing.assert_close(actual, expected, rtol=0, atol=ROUNDING)


def step_by_step(model: DietTransformerModel, source: Tensor, previous: Tensor) -> Tensor:
    """Logits of decoding with a cache: (B, T, V)."""
    encoder_out, state = model.encoder(source, None), dict[str, Any]()
    steps = [
        model.decoder(previous[:, : t + 1], encoder_out, incremental_state=state)[0]
        for t in range(previous.size(1))
    ]
    return torch.cat(steps, dim=1)


def gradients(model: nn.Module, *given: Any, **named: Any) -> dict[str, Tensor]:
    """Of one step, by parameter; the loss tells all outputs apart."""
    model.zero_grad()
    model(*given, **named)[0].sin().sum().backward()
    return {
        name.removeprefix("module."): parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def assert_finite_gradients(model: nn.Module, *moved: str) -> None:
    """All gradients are finite; those of the parameters ``moved`` exist and are not 0."""
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    for name, gradient in grads.items():
        assert torch.isfinite(gradient).all(), name
    for name in moved:
        assert grads[name].any(), name
