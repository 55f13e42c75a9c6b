"""Decoding step by step equals a full pass, whatever happens to beams and other runs meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from diet_mt import kernels
from diet_mt.layers import run as runs
from diet_mt.layers.decoder import DietDecoder
from diet_mt.layers.run import Projection
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import NAMES, PositionRange, factors
from diet_mt.system.errors import UserError

from ..positions.cases import DYNAMIC
from ..toy import (
    EOS,
    FIRST_WORD,
    KINDS,
    KINDS_OF_ENCODING,
    PAD,
    PRE_NORM,
    UNLIMITED,
    WORDS,
    attention_positions,
    build,
    close,
    collate,
    each_encoding,
    each_kind,
    sources,
    step_by_step,
    targets,
)

STEPS = 8
every_name = pytest.mark.parametrize("encoding", sorted(NAMES))


class Decoding:
    """Beams decoded step by step, compared with a full pass over the same tokens.

    ``sentence``: (rows,), the source sentence of each row.
    """

    def __init__(self, model: DietTransformerModel, source: Tensor) -> None:
        self.model = model.eval()
        self.source = source
        self.sentence = torch.arange(source.size(0))
        self.tokens = torch.full((source.size(0), 1), EOS)
        self.encoder_out = model.encoder(source, None)
        self.state: dict[str, Any] = {}

    def step(self) -> None:
        """A step, compared with the full pass; then each row is extended by a random word."""
        logits, extra = self.model.decoder(
            self.tokens,
            encoder_out=self.encoder_out,
            incremental_state=self.state,
            alignment_layer=2,
        )
        full, full_extra = self.model(
            self.source[self.sentence], None, self.tokens, alignment_layer=2
        )
        close(logits[:, 0], full[:, -1])
        close(extra["attn"][0][:, 0], full_extra["attn"][0][:, -1])
        words = torch.randint(FIRST_WORD, FIRST_WORD + WORDS, (self.tokens.size(0), 1))
        self.tokens = torch.cat([self.tokens, words], dim=1)

    def reorder(self, order: Tensor) -> None:
        """Row r becomes what row ``order[r]`` was, as fairseq's beam search does it."""
        self.tokens, self.sentence = self.tokens[order], self.sentence[order]
        self.model.decoder.reorder_incremental_state_scripting(self.state, order)
        self.encoder_out = self.model.encoder.reorder_encoder_out(self.encoder_out, order)

    def cached_sources(self) -> int:
        """Number of sentences for which the run stores keys and values of the source."""
        return int(self.state["diet_mt.run"]["run"].cache.sources[0].size(0))


def within(rows: int, beams: int) -> Tensor:
    """A random order in which every row stays with its sentence."""
    own = torch.arange(rows) // beams * beams
    return own + torch.randint(0, beams, (rows,))


@pytest.mark.parametrize(
    ("side", "norm"), [("left", {}), ("right", PRE_NORM)], ids=["left-post-norm", "right-pre-norm"]
)
@each_encoding
def test_step_by_step_equals_all_at_once(
    encoding: str,
    sharing: str | None,
    norm: dict[str, Any],
    side: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From one block of positions to the next, to the last of n_T = 10 positions and not beyond."""
    monkeypatch.setattr(runs, "BLOCK", 4)
    decoding = Decoding(build(encoding, sharing, **norm), collate(sources(), side))
    for _ in range(10):
        decoding.step()
    if encoding in UNLIMITED:
        decoding.step()
    else:
        with pytest.raises(UserError, match=r"11 tokens.*10 positions"):
            decoding.step()


@pytest.mark.usefixtures("either_memory")
@torch.no_grad()
@each_encoding
def test_beams_reordered_sentences_dropped_and_permuted(
    encoding: str, sharing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at the end of a block of positions."""
    monkeypatch.setattr(runs, "BLOCK", 4)
    beams = 3
    decoding = Decoding(build(encoding, sharing), collate(sources((7, 4, 1)), "left"))
    decoding.step()
    decoding.reorder(torch.arange(3).repeat_interleave(beams))
    assert decoding.encoder_out["beams"] == [beams]
    finished = torch.cat([torch.randint(0, 3, (beams,)), 6 + torch.randint(0, 3, (beams,))])
    for t in range(STEPS):
        decoding.step()
        rows = len(decoding.tokens)
        # One entry per sentence, until the rows of a sentence are no longer adjacent.
        assert decoding.cached_sources() == (rows if t > 5 else rows // beams)
        if t == 2:  # the second sentence is finished
            decoding.reorder(finished)
        elif t == 4:  # the other two change places
            decoding.reorder(torch.tensor([5, 3, 3, 0, 1, 1]))
        elif t == 5:  # rows in any order
            decoding.reorder(torch.tensor([0, 4, 1, 5, 2, 0]))
        else:
            decoding.reorder(within(rows, beams if t < 5 else 1))


@pytest.mark.usefixtures("either_memory")
@torch.no_grad()
@pytest.mark.parametrize("order", ["any", "one row dies out", "fewer rows"])
@pytest.mark.parametrize(("encoding", "options"), [
    ("diet-rel", {}), ("shaw", {}), ("rotary", {}), ("rotary", DYNAMIC),
    *((name, {"position_layers": "::2"})
      for name in ("diet-rel", "diet-abs", "shaw", "deberta", "pope", "transformer-xl")),
])  # fmt: skip
def test_the_same_kind_of_order_at_every_step(
    encoding: str, options: dict[str, Any], order: str
) -> None:
    decoding = Decoding(build(encoding, **options), collate(sources((7, 4, 1)), "left"))
    decoding.reorder(torch.arange(3).repeat_interleave(4))
    for _ in range(5):
        decoding.step()
        rows = len(decoding.tokens)
        taken = torch.randint(0, rows, (rows,)) if "dies" in order else torch.randperm(rows)
        decoding.reorder(taken[: max(rows - 2, 1)] if "fewer" in order else taken)
    decoding.step()


@torch.no_grad()
@each_kind
def test_a_full_pass_over_opened_beams(encoding: str, sharing: str | None) -> None:
    """Scoring several hypotheses of a sentence at once, without caches."""
    model = build(encoding, sharing).eval()
    source = collate(sources((7, 4)), "left")
    order = torch.tensor([0, 0, 0, 1, 1, 1])
    encoder_out = model.encoder.reorder_encoder_out(model.encoder(source, None), order)
    for length in (1, 5):
        previous = torch.randint(FIRST_WORD, FIRST_WORD + WORDS, (6, length))
        logits, extra = model.decoder(previous, encoder_out=encoder_out, alignment_layer=0)
        expected, full_extra = model(source[order], None, previous, alignment_layer=0)
        close(logits, expected)
        close(extra["attn"][0], full_extra["attn"][0])


@torch.no_grad()
def test_reordered_encoder_output_keeps_every_entry_with_its_sentence() -> None:
    model = build("diet-rel").eval()
    opened = model.encoder.reorder_encoder_out(
        model.encoder(collate(sources((7, 4))), None), torch.tensor([0, 0, 1, 1])
    )
    # A copy at every step would take some 3 % of the time of fairseq's decoding.
    assert model.encoder.reorder_encoder_out(opened, torch.tensor([1, 0, 3, 3])) is opened
    rows = sources((7, 4, 1))
    order = torch.tensor([2, 2, 0, 0])
    moved = model.encoder.reorder_encoder_out(model.encoder(collate(rows, "left"), None), order)
    expected = model.encoder(collate([rows[2], rows[2], rows[0], rows[0]], "left"), None)
    assert moved["beams"] == [1], "four rows of three sentences are no regular beams"
    for key in ("encoder_padding_mask", "key_padding", "source_columns", "src_lengths"):
        assert len(moved[key]) == len(expected[key]) == 1
        assert torch.equal(moved[key][0], expected[key][0])
    for key in ("encoder_out", "encoder_embedding"):
        close(moved[key][0], expected[key][0])


def test_a_batch_padded_on_the_left_cannot_be_decoded_step_by_step() -> None:
    model = build("none").eval()
    encoder_out = model.encoder(collate(sources((7, 4))), None)
    with pytest.raises(UserError, match="left"):
        model.decoder(torch.tensor([[PAD], [EOS]]), encoder_out=encoder_out, incremental_state={})


@torch.no_grad()
@pytest.mark.parametrize(("beyond", "kernel"), [("clip", True), ("repeat", False)])
@each_encoding
def test_decoding_goes_on_beyond_the_tables(
    encoding: str, sharing: str | None, beyond: str, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n_S = 11 and n_T = 10: a source of 14 tokens and 13 steps, as in a full pass."""
    if not kernel:
        monkeypatch.setattr(kernels, "serve", lambda x: False)
    model = build(encoding, sharing, beyond_table=beyond)
    assert min(model.max_positions()) > 10**6
    decoding = Decoding(model, collate(sources((14, 4)), "left"))
    decoding.reorder(torch.arange(2).repeat_interleave(3))
    for _ in range(13):
        decoding.step()
        decoding.reorder(within(6, 3))


@pytest.mark.parametrize("mode", ["train", "eval"])
@each_kind
def test_positions_are_computed_once_per_pass_or_block(
    encoding: str, sharing: str | None, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all layers together; under activation checkpointing, not again in the backward pass."""
    model = getattr(build(encoding, sharing, checkpoint_activations=mode == "train"), mode)()
    modules = {kind: attention_positions(model, kind) for kind in KINDS}
    calls = {kind: 0 for kind, module in modules.items() if module is not None}
    for kind in calls:

        def counting(*given: PositionRange, kind: str = kind, own: Any = modules[kind]) -> Any:
            calls[kind] += 1
            return type(own).for_layers(own, *given)

        monkeypatch.setattr(modules[kind], "for_layers", counting)
    logits, _ = model(collate(sources(), "left"), None, collate(targets()))
    if mode == "train":
        logits.sum().backward()
    assert set(calls.values()) <= {1}
    monkeypatch.setattr(runs, "BLOCK", 4)
    step_by_step(model, collate(sources(), "left"), collate(targets()))
    # Keys of the source in cross-attention take the first block's terms: no further call.
    assert {kind: 2 if kind == "encoder" else 3 for kind in calls} == calls


@torch.no_grad()
@pytest.mark.parametrize("change", ["update", "bfloat16", "longer sentences"])
@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_nothing_of_a_run_is_left_for_the_next(encoding: str, change: str) -> None:
    """After an unfinished run and a change: the results of a new model."""
    model = build(encoding).eval()
    short, previous = collate(sources((4, 3)), "left"), torch.randint(4, 44, (2, 8))
    before = step_by_step(model, short, previous[:, :3])
    if change == "update":  # through .data, as by fairseq's Adam: version counters stay
        for parameter in model.parameters():
            parameter.data.mul_(0.9).add_(0.05)
    elif change == "bfloat16":
        model.to(torch.bfloat16)
    source = collate(sources((9, 4)), "left") if change == "longer sentences" else short
    after = step_by_step(model, source, previous)
    fresh = build(encoding, seed=2).eval().to(next(model.parameters()).dtype)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(after, step_by_step(fresh, source, previous))
    assert torch.equal(model(source, None, previous)[0], fresh(source, None, previous)[0])
    if change != "longer sentences":
        assert not torch.equal(after[:, :3].double(), before.double())


@torch.no_grad()
@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_two_runs_at_a_time_do_not_disturb_each_other(encoding: str) -> None:
    model = build(encoding, max_source_positions=20).eval()
    batches = [collate(sources((4, 3)), "left"), collate(sources((9, 5), seed=7), "left")]
    words = [torch.randint(4, 44, (2, 8)) for _ in batches]
    alone = [step_by_step(model, *given) for given in zip(batches, words, strict=True)]
    encoded = [model.encoder(source, None) for source in batches]
    states: list[dict[str, Any]] = [{}, {}]
    for t in range(10):
        for number, lag in enumerate((0, 2)):  # the second run starts two steps later
            if 0 <= t - lag < 8:
                previous = words[number][:, : t - lag + 1]
                step, _ = model.decoder(previous, encoded[number], incremental_state=states[number])
                assert torch.equal(step[:, 0], alone[number][:, t - lag])


class OneDevice(TorchDispatchMode):
    """Fails for operations on tensors of several devices: a model has left one behind.

    Tensors without dimensions may be on any device, as in torch itself.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        devices = {value.device for value in given if value.dim()}
        assert len(devices) < 2 or func is torch.ops.aten._to_copy.default, (func, devices)
        return func(*args, **(kwargs or {}))


@torch.no_grad()
@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=pytest.mark.gpu)])
@every_name
def test_a_model_that_has_run_moves_whole(
    encoding: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors on ``meta``, which every machine has, have shapes but no values."""
    model = build(encoding).eval()
    source, previous = collate(sources((4, 4)), "left"), torch.randint(4, 44, (2, 4))
    before = step_by_step(model, source, previous)
    model.to(device)
    if device == "meta":
        # Two branches read values: whether there is padding, and whether rows are beams. Neither.
        truth = Tensor.__bool__
        monkeypatch.setattr(Tensor, "__bool__", lambda t: False if t.is_meta else truth(t))
    with OneDevice():
        after = step_by_step(model, source.to(device), previous.to(device))
    assert after.device.type == device
    assert after.shape == before.shape
    if device != "meta":
        close(after.cpu(), before)


@torch.no_grad()
@pytest.mark.usefixtures("either_memory")
@pytest.mark.parametrize("opened", [1, 33])
@pytest.mark.parametrize("encoding", ["diet-rel", "shaw"])
def test_a_long_run_reuses_the_memory_of_dropped_words(encoding: str, opened: int) -> None:
    """Five beams from step 1 or 33 on, at every other step all from one; a sentence is dropped."""
    model = build(encoding, max_target_positions=50)
    decoding = Decoding(model, collate(sources((4, 3)), "left"))
    for step in range(1, 41):
        decoding.step()
        if step == opened:
            decoding.reorder(torch.arange(2).repeat_interleave(5))
        elif step == 40:
            memory = decoding.state["diet_mt.run"]["run"].cache.target[0]
            slots = memory.size(0) * (memory.size(2) if memory.dim() == 4 else 1)
            assert slots < 10 * step / 2
            decoding.reorder(torch.tensor([7, 5, 6, 6, 9]))
        elif step > opened:
            decoding.reorder(torch.tensor([0] * 5 + [7] * 5) if step % 2 else within(10, 5))
    decoding.step()


@torch.no_grad()
@pytest.mark.usefixtures("either_memory")
@pytest.mark.parametrize("encoding", ["diet-abs", "tupe-abs"])
def test_no_step_appends_factors(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "APPEND_FROM", 1)
    decoding = Decoding(build(encoding), collate(sources()))
    for _ in range(6):
        decoding.step()


def test_unread_tokens_are_refused() -> None:
    model, state = build("diet-rel").eval(), dict[str, Any]()
    encoder_out = model.encoder(collate(sources((4, 3)), "left"), None)
    for length in (1, 2, 3):
        model.decoder(torch.full((2, length), 5), encoder_out, incremental_state=state)
    for length in (3, 5):
        with pytest.raises(ValueError, match=rf"3 .*{length}"):
            model.decoder(torch.full((2, length), 5), encoder_out, incremental_state=state)


@pytest.mark.parametrize("change", ["", "hook", "weight norm"])
@pytest.mark.parametrize("biases", [(True, True), (False, False), (True, False, True)], ids=str)
def test_a_projection_equals_its_layers_side_by_side(biases: tuple[bool, ...], change: str) -> None:
    """Also for layers that compute more than a product."""
    x = torch.randn(5, 6, dtype=torch.float64)
    layers = [nn.Linear(6, 3 + n, bias=bias).double() for n, bias in enumerate(biases)]
    if change == "hook":
        layers[1].register_forward_hook(lambda module, given, out: 2 * out)
    elif change:
        nn.utils.parametrizations.weight_norm(layers[1])
    close(Projection(layers)(x), torch.cat([layer(x) for layer in layers], dim=-1))


@torch.no_grad()
def test_a_quantized_decoder_without_a_source() -> None:
    model = build("diet-rel").float().eval()
    words = model.decoder
    decoder = DietDecoder(words.cfg, words.dictionary, words.embed_tokens, no_encoder_attn=True)
    quantized = torch.ao.quantization.quantize_dynamic(decoder.eval(), {nn.Linear})
    tokens, state = torch.full((2, 3), 5), dict[str, Any]()
    steps = [quantized(tokens[:, : t + 1], incremental_state=state)[0] for t in range(3)]
    torch.testing.assert_close(torch.cat(steps, 1), quantized(tokens)[0], rtol=0, atol=0.05)
