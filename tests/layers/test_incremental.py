"""Step by step equals all at once, whatever happens to the beams in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt import kernels
from diet_mt.errors import UserError
from diet_mt.models.diet_transformer import DietTransformerModel

from ..toy import (
    EOS,
    FIRST_WORD,
    PAD,
    PRE_NORM,
    UNLIMITED,
    WORDS,
    build,
    close,
    collate,
    each_encoding,
    each_kind,
    sources,
    targets,
)

STEPS = 8


class Decoding:
    """Beams decoded step by step, and beside them the same beams through the whole model at once.

    ``sentence``: for each row the source sentence that it belongs to, (rows,).
    """

    def __init__(self, model: DietTransformerModel, source: Tensor) -> None:
        self.model = model.eval()
        self.source = source
        self.sentence = torch.arange(source.size(0))
        self.tokens = torch.full((source.size(0), 1), EOS)
        self.encoder_out = model.encoder(source, None)
        self.state: dict[str, Any] = {}

    def step(self) -> None:
        """One step, compared with the full pass; then every row gets a random next word."""
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

    def cached_sources(self) -> set[int]:
        """Rows for which the run keeps keys and values of the source."""
        run = self.state["diet_mt.run"]["run"]
        return {run.memory.sources[0].size(0)}


def within(rows: int, beams: int) -> Tensor:
    """A random order in which every row stays with its sentence."""
    own = torch.arange(rows) // beams * beams
    return own + torch.randint(0, beams, (rows,))


@pytest.mark.parametrize(
    ("side", "norm"),
    [("left", {}), ("right", PRE_NORM)],
    ids=["left-post-norm", "right-pre-norm"],
)
@each_encoding
def test_teacher_forced_equals_step_by_step(
    encoding: str, sharing: str | None, norm: dict[str, Any], side: str
) -> None:
    model = build(encoding, sharing, **norm).eval()
    source, previous = collate(sources(), side), collate(targets())
    previous[previous.eq(PAD)] = FIRST_WORD
    encoder_out = model.encoder(source, None)
    full, full_extra = model.decoder(previous, encoder_out=encoder_out, alignment_layer=1)
    state: dict[str, Any] = {}
    for t in range(previous.size(1)):
        logits, extra = model.decoder(
            previous[:, : t + 1],
            encoder_out=encoder_out,
            incremental_state=state,
            alignment_layer=1,
        )
        assert logits.size(1) == 1
        close(logits[:, 0], full[:, t])
        close(extra["attn"][0][:, 0], full_extra["attn"][0][:, t])
        assert extra["attn"][0].size(2) == source.size(1)


@pytest.mark.usefixtures("either_memory")
@torch.no_grad()
@each_encoding
def test_beams_reordered_sentences_dropped_and_permuted(encoding: str, sharing: str | None) -> None:
    beams = 3
    decoding = Decoding(build(encoding, sharing), collate(sources((7, 4, 1)), "left"))
    decoding.reorder(torch.arange(3).repeat_interleave(beams))
    assert decoding.encoder_out["beams"] == [beams]
    finished = torch.cat([torch.randint(0, 3, (beams,)), 6 + torch.randint(0, 3, (beams,))])
    for t in range(STEPS):
        decoding.step()
        rows = len(decoding.tokens)
        # One row per sentence, until rows of different sentences stand side by side.
        assert decoding.cached_sources() == ({rows} if t > 5 else {rows // beams})
        if t == 2:  # the sentence in the middle is finished
            decoding.reorder(finished)
        elif t == 4:  # the two left change places
            decoding.reorder(torch.tensor([5, 3, 3, 0, 1, 1]))
        elif t == 5:  # rows in any order
            decoding.reorder(torch.tensor([0, 4, 1, 5, 2, 0]))
        else:
            decoding.reorder(within(rows, beams if t < 5 else 1))


@torch.no_grad()
@each_encoding
def test_beams_opened_after_the_first_step(encoding: str, sharing: str | None) -> None:
    beams = 4
    decoding = Decoding(build(encoding, sharing), collate(sources((7, 4, 1)), "left"))
    decoding.step()
    decoding.reorder(torch.arange(3).repeat_interleave(beams))
    assert decoding.encoder_out["beams"] == [beams]
    for _ in range(3):
        decoding.step()
        assert decoding.cached_sources() == {3}
        decoding.reorder(within(12, beams))


ORDERS: dict[str, Callable[[int], Tensor]] = {
    "as they are": torch.arange,
    "any order": lambda rows: torch.randperm(rows),
    "one row dies out": lambda rows: torch.randint(0, rows, (rows,)),
    "fewer rows": lambda rows: torch.randperm(rows)[: max(rows - 2, 1)],
}


@torch.no_grad()
@pytest.mark.parametrize("order", ORDERS, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("encoding", ["diet-rel", "shaw", "rotary"])
def test_the_same_kind_of_order_at_every_step(encoding: str, order: str) -> None:
    decoding = Decoding(build(encoding), collate(sources((7, 4, 1)), "left"))
    decoding.reorder(torch.arange(3).repeat_interleave(4))
    for _ in range(5):
        decoding.step()
        decoding.reorder(ORDERS[order](len(decoding.tokens)))
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
        found, extra = model.decoder(previous, encoder_out=encoder_out, alignment_layer=0)
        expected, full_extra = model(source[order], None, previous, alignment_layer=0)
        close(found, expected)
        close(extra["attn"][0], full_extra["attn"][0])


@torch.no_grad()
def test_encoder_output_of_beams_that_stay_is_not_copied() -> None:
    """Copying it at every step takes some 3 % of fairseq's decoding."""
    model = build("diet-rel").eval()
    opened = model.encoder.reorder_encoder_out(
        model.encoder(collate(sources((7, 4))), None), torch.tensor([0, 0, 1, 1])
    )
    assert model.encoder.reorder_encoder_out(opened, torch.tensor([1, 0, 3, 3])) is opened


@torch.no_grad()
def test_reordered_encoder_output_keeps_every_entry_with_its_sentence() -> None:
    model = build("diet-rel").eval()
    rows = sources((7, 4, 1))
    order = torch.tensor([2, 2, 0, 0])
    moved = model.encoder.reorder_encoder_out(model.encoder(collate(rows, "left"), None), order)
    expected = model.encoder(collate([rows[2], rows[2], rows[0], rows[0]], "left"), None)
    assert moved["beams"] == [1], "four rows of three sentences are no regular beams"
    for key in ("encoder_padding_mask", "source_mask", "source_columns", "src_lengths"):
        assert len(moved[key]) == len(expected[key]) == 1
        assert torch.equal(moved[key][0], expected[key][0])
    close(moved["encoder_out"][0], expected["encoder_out"][0])
    close(moved["encoder_embedding"][0], expected["encoder_embedding"][0])


def test_a_batch_padded_on_the_left_cannot_be_decoded_step_by_step() -> None:
    model = build("none").eval()
    encoder_out = model.encoder(collate(sources((7, 4))), None)
    with pytest.raises(UserError, match="padded on the left"):
        model.decoder(torch.tensor([[PAD], [EOS]]), encoder_out=encoder_out, incremental_state={})


@torch.no_grad()
@each_encoding
def test_decoding_to_the_last_position_and_not_beyond(encoding: str, sharing: str | None) -> None:
    """n_T = 10: the tenth token is decoded; past the tables there is a message, not an index."""
    decoding = Decoding(build(encoding, sharing), collate(sources((7,))))
    for _ in range(10):
        decoding.step()
    if encoding in UNLIMITED:
        decoding.step()
    else:
        with pytest.raises(UserError, match=r"11 tokens.*10 positions.*--max-target-positions"):
            decoding.step()


@torch.no_grad()
@pytest.mark.parametrize(("beyond", "kernel"), [("clip", True), ("repeat", False)])
@each_encoding
def test_decoding_goes_on_beyond_the_tables(
    encoding: str, sharing: str | None, beyond: str, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n_S = 11 and n_T = 10: a source of 14 tokens and 13 steps, as a full pass has them."""
    if not kernel:
        monkeypatch.setattr(kernels, "serve", lambda x: False)
    model = build(encoding, sharing, beyond_table=beyond)
    assert min(model.max_positions()) > 10**6
    decoding = Decoding(model, collate(sources((14, 4)), "left"))
    decoding.reorder(torch.arange(2).repeat_interleave(3))
    for _ in range(13):
        decoding.step()
        decoding.reorder(within(6, 3))
