"""Beyond a table stands what the rule names, entry by entry; and with no rule an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from diet_mt.errors import UserError
from diet_mt.positions import (
    BEYOND,
    CROSS,
    DECODER,
    ENCODER,
    NAMES,
    REFUSE,
    AttentionBias,
    AttentionShape,
    build_position,
)
from diet_mt.positions.beyond import read
from diet_mt.positions.sinusoidal import sinusoids

QUERIES, KEYS = 4, 6  # of the tables
LONG = 15  # of the sentences
HOW = [how for how in BEYOND if how != REFUSE]


def stands_for(how: str, place: int, size: int) -> int:
    """The position of the table that counts for ``place``."""
    return {"clip": min(place, size - 1), "repeat": place % size}[how]


def shape(kind: str, beyond: str) -> AttentionShape:
    keys = KEYS if kind == CROSS else QUERIES
    return AttentionShape(2, 3, 4, QUERIES, keys, kind, beyond=beyond)


def bias_of(encoding: str, kind: str, beyond: str) -> AttentionBias:
    torch.manual_seed(2)
    found = build_position(encoding).attention_positions(shape(kind, beyond))
    assert isinstance(found, AttentionBias)
    for parameter in found.parameters():
        nn.init.normal_(parameter)
    return found.double()


@torch.no_grad()
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", [ENCODER, DECODER, CROSS])
@pytest.mark.parametrize("encoding", ["diet-abs", "tupe-abs"])
def test_absolute_tables_are_read_at_another_position(encoding: str, kind: str, how: str) -> None:
    """All entries at once, and each row as a step of decoding asks for it."""
    bias, known = bias_of(encoding, kind, how), bias_of(encoding, kind, REFUSE)
    keys = known.shape.max_keys
    inside = known(range(QUERIES), range(keys))
    expected = torch.stack(
        [
            torch.stack(
                [
                    inside[..., stands_for(how, i, QUERIES), stands_for(how, j, keys)]
                    for j in range(LONG)
                ],
                dim=-1,
            )
            for i in range(LONG)
        ],
        dim=-2,
    )
    torch.testing.assert_close(bias(range(LONG), range(LONG)), expected)
    for i in range(LONG):
        torch.testing.assert_close(
            bias(range(i, i + 1), range(i + 1)), expected[..., i : i + 1, : i + 1]
        )


@torch.no_grad()
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", [ENCODER, DECODER, CROSS])
def test_distances_are_read_at_another_distance(kind: str, how: str) -> None:
    bias = bias_of("diet-rel", kind, how)
    keys = bias.shape.max_keys
    tables = bias.stacked("by_offset")  # (L, H, n_T + n_S - 1), distance 0 in column n_S - 1
    found = bias(range(LONG), range(LONG))
    for i in range(LONG):
        for j in range(LONG):
            far = stands_for(how, i - j, QUERIES) if i >= j else -stands_for(how, j - i, keys)
            assert torch.equal(found[..., i, j], tables[..., far + keys - 1])
        assert torch.equal(bias(range(i, i + 1), range(LONG)), found[..., i : i + 1, :])


@torch.no_grad()
@pytest.mark.parametrize("how", HOW)
def test_linformer_mixes_keys_by_another_row(how: str) -> None:
    found = build_position("linformer").attention_positions(shape(ENCODER, how))
    assert found is not None
    places = [stands_for(how, j, QUERIES) for j in range(LONG)]
    for layer, table in zip(
        found.for_layers(range(LONG), range(LONG)), found.tables(), strict=True
    ):
        assert torch.equal(layer.of_keys, table.of_keys[:, places])  # type: ignore[attr-defined]
        assert torch.equal(layer.of_values, table.of_values[:, places])  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("encoding", ["learned", "linformer", "concat"])
def test_learned_rows_at_the_input(encoding: str, how: str) -> None:
    added = build_position(encoding).input_positions(QUERIES, 16)
    assert added is not None
    added.beyond = how
    places = [stands_for(how, i, QUERIES) for i in range(LONG)]
    assert torch.equal(added.rows(range(LONG))[0], added.table()[places])
    assert torch.equal(added.rows(range(9, 10))[0, 0], added.table()[places[9]])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("encoding", ["sinusoidal", "shape", "cape"])
def test_sinusoids_go_on(encoding: str, how: str) -> None:
    added = build_position(encoding).input_positions(QUERIES, 16)
    assert added is not None
    added.beyond = how
    assert torch.equal(added.eval()(torch.ones(1, LONG), range(LONG))[0], sinusoids(LONG, 16))
    assert torch.equal(added.rows(range(9, 10))[0], sinusoids(LONG, 16)[9:10])


@pytest.mark.parametrize("how", HOW)
def test_shifted_sinusoids_go_on_in_training(how: str) -> None:
    """Every sentence has LONG rows of the sinusoids, from some place up to the shift on."""
    shift = 2
    added = build_position("shape", shift=shift).input_positions(QUERIES, 16)
    assert added is not None
    added.beyond = how
    rows = added.train()(torch.ones(6, LONG), range(LONG))
    known = sinusoids(LONG + shift, 16)
    starts = [known[first : first + LONG] for first in range(shift + 1)]
    for sentence in rows:
        assert any(torch.equal(sentence, each) for each in starts)


@pytest.mark.parametrize("encoding", sorted(NAMES))
def test_by_default_what_has_a_table_refuses(encoding: str) -> None:
    made = build_position(encoding)
    added = made.input_positions(QUERIES, 16)
    if added is not None:
        with pytest.raises(UserError, match=r"5 tokens is longer than the 4 .*--beyond-table"):
            added.rows(range(4, 5))
    inside = made.attention_positions(shape(ENCODER, REFUSE))
    if inside is not None and inside.limited:
        with pytest.raises(UserError, match=r"5 tokens is longer than the 4 .*--beyond-table"):
            inside.for_layers(range(5), range(5))


@pytest.mark.parametrize(
    "change",
    [lambda table: table, lambda table: table.requires_grad_()],
    ids=["plain", "gradient"],
)
def test_what_lies_inside_is_read_as_it_is(change: Callable[[Tensor], Tensor]) -> None:
    table = change(torch.arange(10.0).view(2, 5))
    for how in BEYOND:
        assert torch.equal(read(table, range(1, 4), how, dim=1, zero=2), table[:, 1:4])
        assert torch.equal(read(table, torch.tensor([0, 3]), how, dim=1), table[:, [0, 3]])
