"""fairseq's own ``transformer`` with the same weights: the same logits and gradients.

fairseq numbers positions from ``padding_idx + 1`` on, we from 0. Its tables begin with two rows
that no word reads, and ours are its rows from the third one on: learned ones are copied so, and in
the sinusoidal model our fixed table is replaced by those rows of fairseq's, since ours starts at
another angle (``tests/positions/test_sinusoidal.py`` compares the tables themselves). What is left
to agree is everything else.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import fairseq.utils
import pytest
import torch
import torch.nn.functional as F
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.models.transformer import TransformerModel
from torch import Tensor, nn

from diet_mt.models.diet_transformer import DietTransformerModel

from ..toy import (
    EOS,
    PAD,
    PRE_NORM,
    SIZES,
    ToyTask,
    build,
    collate,
    position_parameters,
    real,
    sources,
    targets,
)

THEIR_POSITIONS: dict[str, dict[str, Any]] = {
    "learned": {"encoder_learned_pos": True, "decoder_learned_pos": True},
    "sinusoidal": {},
    "none": {"no_token_positional_embeddings": True},
}
FIRST = PAD + 1  # fairseq's row of the first word
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11}

any_positions = pytest.mark.parametrize("encoding", sorted(THEIR_POSITIONS))
# float32 once: what it rounds differently hides nothing that float64 shows.
any_layout = pytest.mark.parametrize(
    ("dtype", "side", "norm"),
    [
        (torch.float64, "left", {}),
        (torch.float64, "right", PRE_NORM),
        (torch.float32, "left", PRE_NORM),
    ],
    ids=["float64-left-post-norm", "float64-right-pre-norm", "float32-left-pre-norm"],
)


@pytest.fixture(autouse=True)
def _softmax_in_the_precision_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq takes every softmax in float32, of float64 logits as well, which would hide all
    differences below 6e-8.
    """
    for name in ("softmax", "log_softmax"):
        plain = getattr(F, name)

        def wide(x: Tensor, dim: int, onnx_trace: bool = False, plain: Any = plain) -> Tensor:
            actual: Tensor = plain(x, dim=dim)
            return actual

        monkeypatch.setattr(fairseq.utils, name, wide)


def pair(
    encoding: str, dtype: torch.dtype, norm: dict[str, Any]
) -> tuple[TransformerModel, DietTransformerModel]:
    """Theirs with random weights, and ours with the same, both in training mode."""
    torch.manual_seed(1)
    given = Namespace(**{**SIZES, **THEIR_POSITIONS[encoding], **norm})
    theirs = TransformerModel.build_model(given, ToyTask()).double()
    with torch.no_grad():
        for parameter in theirs.parameters():  # biases and norms, too, leave their initial values
            parameter.add_(0.1 * torch.randn_like(parameter))
    ours = build(encoding, seed=2, tables=None, **norm)
    own, copied = position_parameters(ours), dict(theirs.named_parameters())
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            if name in own:
                parameter.copy_(position_rows(copied[name], len(parameter)))
            else:
                assert parameter.shape == copied[name].shape, name
                parameter.copy_(copied[name])
        if encoding == "sinusoidal":
            for one, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
                table = one.embed_positions.table()
                table.copy_(position_rows(other.embed_positions.weights, len(table)))
    return theirs.to(dtype), ours.to(dtype)


def position_rows(table: Tensor, count: int) -> Tensor:
    """Of fairseq's table, what belongs to positions 0 .. ``count`` - 1."""
    return table[FIRST : FIRST + count]


def batch(side: str) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, what the decoder reads and what it is to say: (B, S), (B, T), (B, T)."""
    goals = [[*row[1:], EOS] for row in targets()]
    return collate(sources(), side), collate(targets()), collate(goals)


def logits_of(model: nn.Module, side: str) -> Tensor:
    source, previous, _ = batch(side)
    actual: Tensor = model(source, source.ne(PAD).sum(1), previous)[0]
    return actual


@any_layout
@any_positions
def test_logits(encoding: str, dtype: torch.dtype, norm: dict[str, Any], side: str) -> None:
    theirs, ours = pair(encoding, dtype, norm)
    expected, actual = (real(logits_of(model, side), targets()) for model in (theirs, ours))
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == dtype
        assert other.abs().max() > 0.5
        torch.testing.assert_close(one, other, rtol=0, atol=TOLERANCE[dtype])


def step(model: Any, side: str) -> dict[str, Tensor]:
    """The loss of a training step, by word, and the gradients of all parameters that have one."""
    source, previous, goal = batch(side)
    out = model(source, source.ne(PAD).sum(1), previous)
    shares = model.get_normalized_probs(out, log_probs=True)
    loss, _ = label_smoothed_nll_loss(
        shares.flatten(0, 1), goal.flatten(), epsilon=0.1, ignore_index=PAD
    )
    loss = loss / goal.ne(PAD).sum()
    loss.backward()
    actual = {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    return {"loss": loss.detach(), **actual}


@any_layout
@any_positions
def test_gradients_of_a_step_of_training(
    encoding: str, dtype: torch.dtype, norm: dict[str, Any], side: str
) -> None:
    """With label smoothing; no dropout, whose numbers we draw in another way."""
    theirs, ours = pair(encoding, dtype, norm)
    expected, actual = step(theirs, side), step(ours, side)
    tables = position_parameters(ours)
    assert actual.keys() == expected.keys()
    assert actual.keys() == {"loss"} | dict(ours.named_parameters()).keys()
    for name, gradient in actual.items():
        other = expected[name]
        if name in tables:
            assert not other[:FIRST].any(), "rows of no word"
            other = position_rows(other, len(gradient))
        torch.testing.assert_close(gradient, other, rtol=0, atol=TOLERANCE[dtype], msg=name)
        # What is added to every key alike has no effect: its gradient is rounding.
        assert name.endswith("k_proj.bias") or gradient.abs().max() > 1e-4, name
