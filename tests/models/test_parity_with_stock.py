"""A checkpoint of fairseq's own ``transformer`` in our model: the same logits and gradients.

fairseq numbers positions from ``padding_idx + 1`` on, we from 0. Its tables begin with two rows
that no word reads, and ours are its rows from the third one on.
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
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor, nn

from diet_mt.fairseq_patches.trust import attach_options
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions.absolute import SinusoidalInput
from diet_mt.system.errors import UserError

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
    given = Namespace(arch="transformer", **{**SIZES, **THEIR_POSITIONS[encoding], **norm})
    theirs = TransformerModel.build_model(given, ToyTask()).double()
    with torch.no_grad():
        for parameter in theirs.parameters():  # biases and norms, too, leave their initial values
            parameter.add_(0.1 * torch.randn_like(parameter))
    ours = build(encoding, seed=2, tables=None, **norm)
    ours.load_state_dict(weights(theirs, given))
    return theirs.to(dtype), ours.to(dtype)


def weights(model: nn.Module, given: Namespace) -> dict[str, Tensor]:
    """Those of a checkpoint with these options, as a model receives them."""
    state: dict[str, Any] = {"args": given, "model": model.state_dict()}
    attach_options(state)
    loaded: dict[str, Tensor] = state["model"]
    return loaded


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


@any_positions
def test_a_checkpoint_of_the_new_training(encoding: str) -> None:
    """It has the offset of the sinusoids, which a model of ours then has not."""
    _, ours = pair(encoding, torch.float64, {})
    other = build(encoding, seed=3, tables=None)
    fresh = {name: value.clone() for name, value in other.state_dict().items()}
    expected = [logits_of(model, "left") for model in (ours, other)]
    for state, logits in zip((ours.state_dict(), fresh), expected, strict=True):
        other.load_state_dict(state)
        assert torch.equal(logits_of(other, "left"), logits)
    offsets = [name for name in ours.state_dict() if name.endswith("embed_positions.first")]
    assert len(offsets) == (2 if encoding == "sinusoidal" else 0)


def test_sinusoids() -> None:
    """Those of fairseq at all positions, to the last bit, and beyond the table."""
    theirs = SinusoidalPositionalEmbedding.get_embedding(1024 + FIRST, 16, PAD)
    module = SinusoidalInput(1024, 16)
    module.load_state_dict({"first": torch.tensor([float(FIRST)])})
    assert torch.equal(module.table(), position_rows(theirs, 1024))
    _, ours = pair("sinusoidal", torch.float32, {})
    longer = build("sinusoidal", tables=None, max_source_positions=50).float()
    longer.load_state_dict(ours.state_dict())
    added, more = ours.encoder.embed_positions, longer.encoder.embed_positions
    added.extrapolation = "clip"
    torch.testing.assert_close(added.rows(range(50)), more.rows(range(50)), rtol=0, atol=1e-6)


def in_old_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """As fairseq wrote checkpoints before 0.8: one matrix for queries, keys and values of
    self-attention, numbers for layer norms, the table of sinusoids.
    """
    old, names = {}, ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")
    for name, value in state.items():
        if ".self_attn.q_proj." in name:
            parts = [state[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            old[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
        elif ".self_attn.k_proj." in name or ".self_attn.v_proj." in name:
            continue
        else:
            for number, norm in enumerate(names if "decoder" in name else names[::2]):
                name = name.replace(f".{norm}.", f".layer_norms.{number}.")
            old[name] = value
    old["encoder.embed_positions.weights"] = torch.zeros(3, 12)
    return old


def test_old_names() -> None:
    theirs, ours = pair("sinusoidal", torch.float64, {})
    given = Namespace(arch="transformer_iwslt_de_en", **SIZES)
    state = weights(theirs, given)
    state.update(in_old_names(dict(state)))
    for name in [name for name in state if name not in in_old_names(theirs.state_dict())]:
        del state[name]
    model = build("sinusoidal", seed=4)
    model.load_state_dict(state)
    assert torch.equal(logits_of(model, "left"), logits_of(ours, "left"))


# Encoding of the model, its options, and options of fairseq's model that it does not have.
OTHERS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("sinusoidal", {}, {"encoder_attention_heads": 2}, "--encoder-attention-heads 2"),
    ("sinusoidal", {}, {"activation_fn": "gelu"}, "--activation-fn gelu"),
    ("sinusoidal", {}, {"no_scale_embedding": True}, "--no-scale-embedding"),
    ("sinusoidal", {}, THEIR_POSITIONS["none"], "'none "),
    ("sinusoidal", {}, THEIR_POSITIONS["learned"], "'learned "),
    ("sinusoidal", {}, {"decoder_learned_pos": True}, "'learned/sinusoidal "),
    ("sinusoidal", {"attention_scale": "model"}, {}, "scale=head"),
    ("sinusoidal", {"share_decoder_input_output_embed": True}, {}, "decoder.output_projection"),
    ("none", {}, {}, "--reset-positions"),
    ("shape", {}, {}, "'sinusoidal "),
    ("diet-rel", {}, {}, "--reset-positions"),
]


@pytest.mark.parametrize(("encoding", "options", "theirs", "named"), OTHERS)
def test_another_model_of_fairseq_is_refused(
    encoding: str, options: dict[str, Any], theirs: dict[str, Any], named: str
) -> None:
    given = Namespace(arch="transformer", **{**SIZES, **theirs})
    state = weights(TransformerModel.build_model(given, ToyTask()), given)
    with pytest.raises(UserError, match=named):
        build(encoding, **options).load_state_dict(state)
