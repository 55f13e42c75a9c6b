"""The parts of a decoding run: fused projections, the tree of prefixes, caches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.layers.cache import KernelCache
from diet_mt.layers.decoder import DietDecoder
from diet_mt.layers.prefix_cache import ROOM, WIDTH, ByNode, PrefixCache
from diet_mt.layers.run import DecodingRun, Projection, is_product
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn.batch import regroup
from diet_mt.positions.shaw import ShawTerms

from ..toy import build, close, collate, sources

L, H, D = 2, 3, 2


class TestProjection:
    @pytest.mark.parametrize("biases", [(True, True), (False, False), (True, False, True)], ids=str)
    def test_it_equals_the_layers_side_by_side(self, biases: tuple[bool, ...]) -> None:
        x = torch.randn(5, 6, dtype=torch.float64)
        layers = [nn.Linear(6, 3 + n, bias=bias).double() for n, bias in enumerate(biases)]
        close(Projection(layers)(x), torch.cat([layer(x) for layer in layers], dim=-1))

    @pytest.mark.parametrize("change", ["hook", "weight norm"])
    def test_layers_that_do_more_than_a_product_are_called(self, change: str) -> None:
        layers = [nn.Linear(6, 3).double() for _ in range(2)]
        assert is_product(layers[1])
        if change == "hook":
            layers[1].register_forward_hook(lambda module, given, out: 2 * out)
        else:
            nn.utils.parametrizations.weight_norm(layers[1])
        assert not is_product(layers[1])
        x = torch.randn(5, 6, dtype=torch.float64)
        close(Projection(layers)(x), torch.cat([layers[0](x), layers[1](x)], dim=-1))


class Hypotheses:
    """A tree, and the words of each hypothesis: the n-th word of all is n."""

    def __init__(self, sentences: int, group: int) -> None:
        self.tree = PrefixCache(sentences, group)
        self.words: list[list[int]] = [[] for _ in range(sentences * group)]
        self.length, self.count = 0, 0

    def step(self) -> None:
        """A new word for each; then each finds its own words, and no others."""
        for words in self.words:
            self.count += 1
            words.append(self.count)
        self.tree.open(self.length)
        self.length += 1
        last = torch.tensor([words[-1] for words in self.words], dtype=torch.float64)
        new = last[:, None, None].expand(-1, H, D)
        # Keys, values and layers must not be mixed up.
        for layer in range(L):
            k, v = self.tree.write(layer, 100 * layer + new, -100 * layer - new)
            assert torch.equal(k, -v)
            assert k.shape == (self.tree.sentences, H, self.tree.width, D)
            assert torch.equal(k, k[:, :1, :, :1].expand_as(k))
            for row, words in enumerate(self.by_position(k[:, 0, :, 0])):
                assert words == [100 * layer + word for word in self.words[row]]

    def by_position(self, k: Tensor) -> list[list[float]]:
        """For each hypothesis its keys in the order of their positions."""
        by_position = torch.arange(self.length, dtype=torch.float64)[None, None]
        at = self.tree.bias(by_position, torch.float64)[:, 0].flatten(0, 1)  # (rows, width)
        rows = []
        for row, positions in enumerate(at):
            own = positions.isfinite().nonzero().squeeze(1)
            own = own[positions[own].argsort()]
            assert positions[own].tolist() == list(range(self.length))
            rows.append(k[row // self.tree.group, own].tolist())
        return rows

    def move(self, order: list[int]) -> None:
        rows = torch.tensor(order)
        group, sentences = regroup(rows, len(self.words), self.tree.group)
        self.tree.move(rows, sentences, group)
        self.words = [list(self.words[row]) for row in order]
        assert self.tree.sentences * self.tree.group == len(order)


def parents(sentences: list[int], group: int) -> list[int]:
    """A random order in which new sentence b is ``sentences[b]``."""
    chosen = torch.randint(0, group, (len(sentences), group))
    return (torch.tensor(sentences)[:, None] * group + chosen).flatten().tolist()


class TestTree:
    @pytest.mark.parametrize("group", [1, 2, 5])
    def test_each_finds_its_own_words_and_sentences_leave(self, group: int) -> None:
        torch.manual_seed(group)
        beams, sentences = Hypotheses(4, group), 4
        for step in range(60):
            beams.step()
            stay = list(range(sentences))
            if step in (20, 40):  # the last one fills the gap
                stay, sentences = [0, sentences - 1, *range(2, sentences - 1)], sentences - 1
            beams.move(parents(stay, group))
            if step % 7 == 0:  # twice between two steps
                beams.move(parents(list(range(sentences)), group))
        assert beams.tree.sentences == 2

    @pytest.mark.parametrize("first", [0, 1, 3, ROOM])
    def test_one_hypothesis_becomes_several(self, first: int) -> None:
        beams = Hypotheses(3, 1)
        for _ in range(first):
            beams.step()
        beams.move([0] * 4 + [1] * 4 + [2] * 4)
        assert beams.tree.group == 4
        for _ in range(5):
            beams.step()
            beams.move(parents([0, 1, 2], 4))

    @pytest.mark.parametrize(
        "order", [[3, 0, 1, 2, 4, 5], [5, 0, 3], [1], [0, 1, 5, 5, 5, 5, 2, 2]], ids=str
    )
    @pytest.mark.parametrize("steps", [0, 1, 6])
    def test_an_order_that_parts_hypotheses(self, order: list[int], steps: int) -> None:
        beams = Hypotheses(2, 3)
        for _ in range(steps):
            beams.step()
            beams.move(parents([0, 1], 3))
        beams.move(order)
        assert beams.tree.group == 1
        for turn in range(4):
            beams.step()
            rows = len(beams.words)
            beams.move(
                [0, *range(rows - 1)] if turn < 3 else [r for r in range(rows) for _ in "ab"]
            )
        assert beams.tree.group == 2
        beams.step()

    def test_slots_of_dropped_words_are_taken_again(self) -> None:
        """All go on from the best: one word of each step stays, and memory for five at a time."""
        beams = Hypotheses(2, 5)
        for step in range(40):
            beams.step()
            assert beams.tree.width <= -(-(step + 5) // WIDTH) * WIDTH
            beams.move([0] * 5 + [5] * 5)
        assert beams.tree.target[0].size(2) == 2 * ROOM

    def test_terms_that_need_keys_in_their_order(self) -> None:
        """Shaw's: the bias of each distance by query, and the sum of weights at each distance."""
        length, group = 5, 3
        of_keys, of_values = torch.randn(2, H, 7, D, dtype=torch.float64).unbind(0)
        shaw = ShawTerms(of_keys=of_keys, of_values=of_values, query_start=length - 1)
        places = torch.stack([torch.randperm(length) for _ in range(2)])  # (B', S)
        by_node = ByNode(None, shaw, places, length)
        q = torch.randn(2, H, group, D, dtype=torch.float64)
        ordered, bias = shaw.query_bias(q, length, 1.0), by_node.query_bias(q, length, 1.0)
        weights = torch.rand(2, H, group, length, dtype=torch.float64)  # by position
        moved, expected = torch.empty_like(weights), shaw.output(weights)
        assert bias is not None
        assert expected is not None
        for sentence, at in enumerate(places):
            close(bias[sentence], ordered[sentence, ..., at])
            moved[sentence] = weights[sentence, ..., at]
        out = by_node.output(moved)
        assert by_node.changes_output
        assert out is not None
        close(out, expected)


@pytest.mark.usefixtures("either_memory")
class TestCaches:
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
    def test_source_and_target_are_stored_once_per_sentence(self) -> None:
        cache = self.started()[2].cache
        assert (cache.sentences, cache.group) == (2, 2)
        shapes = [[each.shape for each in part] for part in (cache.sources, cache.target)]
        if isinstance(cache, KernelCache):
            assert shapes == [[(2, 4, 16)] * 6, [(cache.capacity, 16)] * 6]
            assert cache.capacity <= 4 * 4  # a row's three tokens and a new one
        else:
            assert shapes == [[(2, 2, 4, 8)] * 6, [(2, 2, ROOM, 8)] * 6]

    def test_unread_tokens_are_refused(self) -> None:
        model, state, _ = self.started()
        encoder_out = model.encoder(collate(sources((4, 3)), "left"), None)
        for length in (3, 5):
            with pytest.raises(ValueError, match=rf"3 tokens, and {length}"):
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
