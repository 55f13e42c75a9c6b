"""What hypotheses share: each finds the keys and values of its own tokens, and no others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.layers.beams import regroup
from diet_mt.layers.nodes import ROOM, WIDTH, ByNode, Nodes
from diet_mt.positions.shaw import ShawLayer

from ..toy import close

L, H, D = 2, 3, 2


class Hypotheses:
    """Nodes, and beside them the words that each hypothesis has read: the n-th word of all is n."""

    def __init__(self, sentences: int, group: int) -> None:
        self.nodes = Nodes(sentences, group, L)
        self.words: list[list[int]] = [[] for _ in range(sentences * group)]
        self.length, self.count = 0, 0

    def step(self) -> None:
        """A new word for each; then what is found for each is compared with what it has read."""
        for words in self.words:
            self.count += 1
            words.append(self.count)
        self.nodes.open(self.length)
        self.length += 1
        last = torch.tensor([words[-1] for words in self.words], dtype=torch.float64)
        new = last[:, None, None, None].expand(-1, H, 1, D)
        # Whatever kind of number stands in keys, values and layers must not be mixed up.
        for layer in range(L):
            k, v = self.nodes.write(layer, 100 * layer + new, -100 * layer - new)
            assert torch.equal(k, -v)
            assert k.shape == (self.nodes.sentences * H, self.nodes.width, D)
            for row, words in enumerate(self.found(k)):
                assert words == [100 * layer + word for word in self.words[row]]

    def found(self, k: Tensor) -> list[list[float]]:
        """For each hypothesis its keys in the order of their positions."""
        nodes = self.nodes
        k = k.unflatten(0, (nodes.sentences, H))
        assert torch.equal(k, k[:, :1, :, :1].expand_as(k))
        by_position = torch.arange(self.length)[None, None].double()
        bias = nodes.bias(by_position)
        assert bias is not None
        if nodes.mask is not None:
            bias = bias.masked_fill(nodes.mask, -1.0)  # a node's position, or -1
        bias = bias.expand(nodes.sentences, 1, nodes.group, nodes.width)
        rows = []
        for row in range(nodes.sentences * nodes.group):
            at = bias[row // nodes.group, 0, row % nodes.group]
            read = (at > -1).nonzero().squeeze(1)
            read = read[at[read].argsort()]
            assert at[read].tolist() == list(range(self.length))
            rows.append(k[row // nodes.group, 0, read, 0].tolist())
        return rows

    def move(self, order: list[int]) -> None:
        rows = torch.tensor(order)
        group, sentences = regroup(rows, len(self.words), self.nodes.group)
        self.nodes.move(rows, sentences, group)
        self.words = [list(self.words[row]) for row in order]
        assert self.nodes.sentences * self.nodes.group == len(order)


def parents(sentences: list[int], group: int) -> list[int]:
    """A random order in which new sentence b is ``sentences[b]``."""
    chosen = torch.randint(0, group, (len(sentences), group))
    return (torch.tensor(sentences)[:, None] * group + chosen).flatten().tolist()


@pytest.mark.parametrize("group", [1, 2, 5])
def test_each_finds_what_it_has_read_and_sentences_leave(group: int) -> None:
    torch.manual_seed(group)
    beams, sentences = Hypotheses(4, group), 4
    for step in range(60):
        beams.step()
        kept = list(range(sentences))
        if step in (20, 40):  # the last one fills the gap
            kept, sentences = [0, sentences - 1, *range(2, sentences - 1)], sentences - 1
        beams.move(parents(kept, group))
        if step % 7 == 0:  # twice between two steps
            beams.move(
                parents(kept, group) if group == 1 else parents(list(range(sentences)), group)
            )
    assert beams.nodes.sentences == 2


@pytest.mark.parametrize("first", [0, 1, 3, ROOM])
def test_one_hypothesis_becomes_several(first: int) -> None:
    beams = Hypotheses(3, 1)
    for _ in range(first):
        beams.step()
    beams.move([0] * 4 + [1] * 4 + [2] * 4)
    assert beams.nodes.group == 4
    for _ in range(5):
        beams.step()
        beams.move(parents([0, 1, 2], 4))


@pytest.mark.parametrize(
    "order", [[3, 0, 1, 2, 4, 5], [5, 0, 3], [1], [0, 1, 5, 5, 5, 5, 2, 2]], ids=str
)
@pytest.mark.parametrize("steps", [0, 1, 6])
def test_an_order_that_parts_the_hypotheses_of_a_sentence(order: list[int], steps: int) -> None:
    beams = Hypotheses(2, 3)
    for _ in range(steps):
        beams.step()
        beams.move(parents([0, 1], 3))
    beams.move(order)
    assert beams.nodes.group == 1
    for turn in range(4):
        beams.step()
        rows = len(beams.words)
        beams.move(
            [0, *range(rows - 1)] if turn < 3 else [row for row in range(rows) for _ in "ab"]
        )
    assert beams.nodes.group == 2
    beams.step()


def test_places_of_words_that_nobody_has_read_are_taken_again() -> None:
    """All go on from the best: one word of each step is left, and memory for five at a time."""
    beams = Hypotheses(2, 5)
    for step in range(40):
        beams.step()
        assert beams.nodes.width <= -(-(step + 5) // WIDTH) * WIDTH
        beams.move([0] * 5 + [5] * 5)
    assert beams.nodes.kept[0].size(2) == 2 * ROOM


def test_what_is_shared_is_not_copied() -> None:
    beams = Hypotheses(3, 4)
    beams.step()
    places = [each.data_ptr() for each in beams.nodes.kept]
    for _ in range(4):
        beams.move(parents([0, 2], 4) if beams.nodes.sentences == 3 else parents([1, 0], 4))
        beams.step()
    assert [each.data_ptr() for each in beams.nodes.kept] == places


def test_terms_that_need_keys_in_their_order() -> None:
    """Shaw's: what a query says of each distance, and the sum of weights at each distance."""
    length, group = 5, 3
    of_keys, of_values = torch.randn(2, H, 7, D, dtype=torch.float64).unbind(0)
    shaw = ShawLayer(of_keys=of_keys, of_values=of_values, query_start=length - 1)
    places = torch.stack([torch.randperm(length) for _ in range(2)])  # (B', S)
    by_node = ByNode(None, shaw, places, length)
    q = torch.randn(2, H, group, D, dtype=torch.float64)
    ordered = shaw.query_bias(q, length, 1.0)
    found = by_node.query_bias(q, length, 1.0)
    weights = torch.rand(2, H, group, length, dtype=torch.float64)  # by position
    out, expected = [], shaw.output(weights)
    assert found is not None
    assert expected is not None
    for sentence, at in enumerate(places):
        close(found[sentence], ordered[sentence, ..., at])
        moved = weights[..., at]
        out.append(moved[sentence])
    assert by_node.changes_output
    total = by_node.output(torch.stack(out))
    assert total is not None
    close(total, expected)
    assert not ByNode(None, ShawLayer(of_keys=of_keys), places, length).changes_output
