"""``diet-mt theorems``: ranks and gradients, computed again another way."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from diet_mt.figures.capture import System, open_systems
from diet_mt.figures.theorems import head_gradients, input_gradients, logits_of

from ..commands.runner import ROOT
from ..processes import called

CONCATENATION = runpy.run_path(str(ROOT / "results" / "figures" / "concatenation.py"))
Write = Callable[..., Path]


def test_ranks_of_draws_are_those_of_theorem_1() -> None:
    n, d, d_h, d_p = 20, 14, 4, 6
    shapes = [(n, d), (n, d), (n, d_p), (n, d_p), (d, d_h), (d, d_h)]
    draws = [torch.randn(shape).double() for shape in shapes]
    reached = [int(np.linalg.matrix_rank(matrix)) for matrix in logits_of(*draws).values()]
    assert reached == [d_h, d_h + d_p, d_h + d_p, n]


def loss_by_hand(system: System) -> torch.Tensor:
    """Cross-entropy of eight sentences of the split valid, one by one, so without any padding."""
    items = [system.task.dataset("valid")[number] for number in range(8)]
    losses, mark = [], torch.tensor([system.task.source_dictionary.eos()])
    for source, target in ((item["source"], item["target"]) for item in items):
        read = torch.cat([mark, target[:-1]])
        logits = system.model(source[None], torch.tensor([len(source)]), read[None])[0][0]
        losses.append(F.cross_entropy(logits, target, reduction="none"))
    assert len({len(each) for each in losses}) > 1
    return torch.cat(losses).mean()


def test_gradients_at_the_input_are_those_of_the_tables(checkpoint: Write, corpus: Path) -> None:
    """Of a table that is learned: what backward leaves in it is the gradient of the words."""
    (system,) = open_systems([checkpoint("learned_tiny")], corpus)
    words, positions = input_gradients(system, "encoder", "valid")
    torch.testing.assert_close(words, positions, rtol=0, atol=1e-14)
    loss_by_hand(system).backward()
    table = system.model.encoder.embed_positions.weight.grad
    torch.testing.assert_close(table[: len(positions)], positions)
    assert positions.abs().max() > 1e-6


def test_heads_have_gradients_of_their_own(checkpoint: Write, corpus: Path) -> None:
    (system,) = open_systems([checkpoint("diet_abs_tiny")], corpus)
    gradients = head_gradients(system, "valid")
    assert {kind: set(names) for kind, names in gradients.items()} == {
        kind: {"query", "key"} for kind in ("encoder", "decoder", "cross")
    }
    for names in gradients.values():
        for gradient in names.values():
            assert len(gradient) == 4
            unit = F.normalize(gradient, dim=-1)
            assert (unit @ unit.T - torch.eye(4)).abs().max() < 0.9


def test_a_sum_misses_what_a_concatenation_has() -> None:
    words, positions = torch.randn(300, 4).double(), torch.randn(300, 2).double()
    more = torch.randn(300, 4).double(), torch.randn(300, 2).double()
    wanted = (positions * more[1]).sum(1)
    concatenated = [torch.cat(pair, 1) for pair in ((words, positions), more)]
    assert CONCATENATION["missed"](*concatenated, wanted) < 1e-12
    added = [first + F.pad(second, (1, 1)) for first, second in ((words, positions), more)]
    assert CONCATENATION["missed"](*added, wanted) > 0.1


def test_columns_that_words_and_positions_share() -> None:
    words = torch.diag(torch.tensor([3.0, 4, 0, 0])).double()
    places = torch.randn(9, 1).double()
    apart = torch.cat([torch.zeros(9, 3), places], 1)
    upon = torch.cat([torch.zeros(9, 1), places, torch.zeros(9, 2)], 1)
    shared_columns = CONCATENATION["shared_columns"]
    assert shared_columns(words, apart) == (pytest.approx(0), 1)
    centred = words.numpy() - words.numpy().mean(0)
    share = (centred[:, 1] ** 2).sum() / (centred**2).sum()
    assert shared_columns(words, upon) == (pytest.approx(share), 1)


def reported(capsys: pytest.CaptureFixture[str], *words: object) -> list[list[str]]:
    """Words of each line of the report."""
    assert called("theorems", *words) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_words_and_positions_at_the_input_have_one_gradient(
    checkpoint: Write, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where few positions are drawn at random. A concatenation has no column of both."""
    few = ("--max-source-positions", "20", "--max-target-positions", "20")
    random = ("--position-randomized", "100")
    folders = [checkpoint("learned_tiny", *few), checkpoint("sinusoidal_tiny", *few, *random)]
    lines = reported(capsys, *folders, checkpoint("concat_tiny"), "--data", corpus)
    rows = [line for line in lines if line[1:3] == ["input", "of"]]
    differences = [(row[0], row[-4], float(row[row.index("by") + 1])) for row in rows]
    assert {(name, columns) for name, columns, _ in differences} == {
        ("learned", "128"), ("sinusoidal", "128"), ("concat", "0")
    }  # fmt: skip
    assert len(differences) == 6
    assert all(difference < 1e-12 for _, _, difference in differences)


def test_draws_alone_need_no_data(capsys: pytest.CaptureFixture[str]) -> None:
    lines = reported(capsys)
    assert [line[-2:] for line in lines if "W_K^T" in line] == [
        ["32", "32"], ["80", "80"], ["80", "80"], ["96", "96"]
    ]  # fmt: skip
    assert called("theorems", "x.pt") == 2
