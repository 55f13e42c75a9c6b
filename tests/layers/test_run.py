"""The parts of a decoding run: blocks of positions, growing caches, fused projections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.errors import UserError
from diet_mt.layers.decoder import DietDecoder
from diet_mt.layers.memory import KernelMemory, TensorMemory
from diet_mt.layers.nodes import ROOM
from diet_mt.layers.run import BLOCK, Block, DecodingRun, Projection, is_product
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import (
    AttentionPositions,
    AttentionShape,
    LayerPositions,
    Span,
    TokenPositions,
)
from diet_mt.positions.spans import RandomizedPositions

from ..toy import build, close, collate, sources

L, H, S, R = 2, 3, 7, 4


@dataclass(frozen=True)
class Part(LayerPositions):
    """A part with a tensor of its own."""

    of_query: Tensor | None = None

    def step(self, row: int, keys: int) -> Part:
        assert self.of_query is not None
        assert self.bias is not None
        own = self.of_query[row : row + 1]
        return replace(self, bias=self.bias[:, row : row + 1, :keys], of_query=own)


class Counted(AttentionPositions):
    """Says what it was asked: the bias at (i, j) is 1000 i + j, and layer l adds 100000 l."""

    def __init__(self, longest: int, limited: bool, *, shared: bool = False) -> None:
        super().__init__(AttentionShape(L, H, 4, longest, longest))
        self.limited = limited  # type: ignore[misc]
        self.one = shared
        self.asked: list[tuple[Span, Span]] = []

    def parts(self, queries: Span, keys: Span) -> list[LayerPositions]:
        self.asked.append((queries, keys))
        column = torch.tensor(list(queries))[:, None]
        bias = (1000 * column + torch.tensor(list(keys)))[None]
        return [
            Part(bias + 100000 * layer, column.expand(-1, R))
            for layer in range(1 if self.one else L)
        ]


def assert_at(found: list[LayerPositions], query: int, keys: int) -> None:
    assert len(found) == L
    for layer, part in enumerate(found):
        assert isinstance(part, Part)
        assert part.bias is not None
        assert part.of_query is not None
        expected = 100000 * layer + 1000 * query + torch.arange(keys)
        assert torch.equal(part.bias, expected.view(1, 1, -1))
        assert torch.equal(part.of_query, torch.full((1, R), query))


class TestBlock:
    @pytest.mark.parametrize("limited", [False, True])
    def test_a_block_serves_its_steps_of_self_attention(self, limited: bool) -> None:
        positions = Counted(2 * BLOCK + 10, limited)
        block = Block(TokenPositions(), positions, L)
        for query in range(2 * BLOCK + 10):
            assert_at(block.at(query), query, query + 1)
        last = 2 * BLOCK + (10 if limited else BLOCK)
        assert positions.asked == [
            (range(BLOCK), range(BLOCK)),
            (range(BLOCK, 2 * BLOCK), range(2 * BLOCK)),
            (range(2 * BLOCK, last), range(last)),
        ]

    def test_keys_of_the_source_are_all_there_at_every_step(self) -> None:
        positions = Counted(200, True)
        block = Block(TokenPositions(), positions, L, range(S))
        for query in (0, 1, BLOCK):
            assert_at(block.at(query), query, S)
        blocks = range(BLOCK), range(BLOCK, 2 * BLOCK)
        assert positions.asked == [(queries, range(S)) for queries in blocks]

    def test_an_earlier_query_is_computed_anew(self) -> None:
        block = Block(TokenPositions(), Counted(200, True), L)
        for query in (BLOCK, 3):
            assert_at(block.at(query), query, query + 1)

    def test_randomized_positions_end_where_they_are_drawn(self) -> None:
        drawn = RandomizedPositions(200, BLOCK + 2)
        positions = Counted(200, True)
        block = Block(drawn, positions, L)
        part = block.at(BLOCK + 1)[0]
        assert part.bias is not None
        assert torch.equal(part.bias[0, 0], 1000 * drawn.fixed[-1] + drawn.fixed)
        assert [len(span) for span in positions.asked[0]] == [2, BLOCK + 2]
        with pytest.raises(UserError, match=rf"{BLOCK + 3} tokens.*{BLOCK + 2} positions"):
            block.at(BLOCK + 2)

    def test_what_layers_share_is_sliced_once(self) -> None:
        found = Block(TokenPositions(), Counted(200, True, shared=True), L).at(3)
        assert len(found) == L
        assert found[0] is found[1]


@pytest.mark.usefixtures("either_memory")
class TestMemory:
    """What the run keeps of the target (``test_nodes.py``, ``test_kernels.py``) and the source."""

    def started(self, rows: int = 4) -> tuple[DietTransformerModel, dict[str, Any], DecodingRun]:
        model = build("diet-rel", max_target_positions=100).eval()
        source, previous = collate(sources((4, 3)), "left"), torch.randint(4, 44, (rows, 3))
        order = torch.arange(2).repeat_interleave(rows // 2)
        encoder_out = model.encoder.reorder_encoder_out(model.encoder(source, None), order)
        state: dict[str, Any] = {}
        for t in range(3):
            model.decoder(previous[:, : t + 1], encoder_out, incremental_state=state)
        return model, state, state["diet_mt.run"]["run"]

    @torch.no_grad()
    def test_source_and_target_are_kept_once_per_sentence(self) -> None:
        _, _, run = self.started()
        memory = run.memory
        assert (run.rows, memory.sentences, memory.group) == (4, 2, 2)
        if isinstance(memory, KernelMemory):
            assert [each.shape for each in memory.sources] == [(2, 4, 16)] * 6
            assert [each.shape for each in memory.kept] == [(memory.capacity, 16)] * 6
            assert memory.capacity <= 4 * 4  # a row's three tokens and a new one
        else:
            assert isinstance(memory, TensorMemory)
            assert [each.shape for each in memory.sources] == [(2, 2, 4, 8)] * 6
            assert [each.shape for each in memory.nodes.kept] == [(2, 2, ROOM, 8)] * 6

    @torch.no_grad()
    @pytest.mark.parametrize(
        ("order", "sentences"),
        [
            ([0, 1, 2, 3], [0, 1]),
            ([1, 0, 2, 2], [0, 1]),
            ([2, 3, 1, 1], [1, 0]),
            ([3, 0, 1, 2], [1, 0, 0, 1]),
            ([3, 2], [1]),
            ([2], [1]),
            ([0] * 6, [0] * 3),
        ],
        ids=str,
    )
    def test_sources_move_with_their_hypotheses(
        self, order: list[int], sentences: list[int]
    ) -> None:
        model, state, run = self.started()
        memory = run.memory
        kept = memory.kept if isinstance(memory, KernelMemory) else memory.nodes.kept
        before, places = memory.sources, [each.data_ptr() for each in kept]
        model.decoder.reorder_incremental_state_scripting(state, torch.tensor(order))
        assert (run.rows, memory.sentences) == (len(order), len(sentences))
        for new, old in zip(memory.sources, before, strict=True):
            assert torch.equal(new, old[sentences])
        if sentences == [0, 1]:  # nothing is copied
            assert memory.sources is before
            assert [each.data_ptr() for each in kept] == places

    def test_tokens_that_the_run_has_not_read_are_refused(self) -> None:
        model, state, _ = self.started()
        encoder_out = model.encoder(collate(sources((4, 3)), "left"), None)
        for length in (3, 5):
            with pytest.raises(ValueError, match=rf"has read 3 tokens, and {length} are given"):
                model.decoder(
                    torch.full((4, length), 5), encoder_out=encoder_out, incremental_state=state
                )


@torch.no_grad()
def test_a_quantized_decoder_without_a_source() -> None:
    model = build("diet-rel").float().eval()
    words = model.decoder
    decoder = DietDecoder(words.cfg, words.dictionary, words.embed_tokens, no_encoder_attn=True)
    quantized = torch.ao.quantization.quantize_dynamic(decoder.eval(), {nn.Linear})
    tokens = torch.full((2, 3), 5)
    state: dict[str, Any] = {}
    steps = [quantized(tokens[:, : t + 1], incremental_state=state)[0] for t in range(3)]
    torch.testing.assert_close(torch.cat(steps, 1), quantized(tokens)[0], rtol=0, atol=0.05)


class TestProjection:
    def layers(self, *biases: bool) -> list[nn.Linear]:
        return [nn.Linear(6, 3 + n, bias=bias).double() for n, bias in enumerate(biases)]

    @pytest.mark.parametrize("biases", [(True, True), (False, False), (True, False, True)], ids=str)
    def test_it_is_what_the_layers_give_side_by_side(self, biases: tuple[bool, ...]) -> None:
        layers, x = self.layers(*biases), torch.randn(5, 6, dtype=torch.float64)
        close(Projection(layers)(x), torch.cat([layer(x) for layer in layers], dim=-1))

    def test_layers_that_do_more_than_a_product_are_called(self) -> None:
        layers, x = self.layers(True, True), torch.randn(5, 6, dtype=torch.float64)
        assert is_product(layers[1])
        layers[1].register_forward_hook(lambda module, given, out: 2 * out)
        assert not is_product(layers[1])
        found = Projection(layers)(x)
        close(found, torch.cat([layers[0](x), layers[1](x)], dim=-1))
        close(found[:, 3:], 2 * nn.functional.linear(x, layers[1].weight, layers[1].bias))

    def test_layers_with_weights_made_of_others_are_called(self) -> None:
        layers = self.layers(True, True)
        nn.utils.parametrizations.weight_norm(layers[0])
        assert not is_product(layers[0])
        x = torch.randn(5, 6, dtype=torch.float64)
        close(Projection(layers)(x), torch.cat([layers[0](x), layers[1](x)], dim=-1))
