"""``diet-mt theorems``: ranks and gradients, computed again another way."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from diet_mt.figures.observed import System, open_systems
from diet_mt.figures.theorems.concatenation import bilinear_error, shared_columns
from diet_mt.figures.theorems.draws import Sizes
from diet_mt.figures.theorems.gradients import head_gradients, input_gradients
from diet_mt.figures.theorems.rank import chosen, logits_of

from ..calling import called

Write = Callable[..., Path]
SIZES = Sizes(n=20, d=14, d_h=4, d_p=6)


def test_ranks_of_draws_are_those_of_theorem_1() -> None:
    n, d, d_h, d_p = SIZES.n, SIZES.d, SIZES.d_h, SIZES.d_p
    shapes = [(n, d), (n, d), (n, d_p), (n, d_p), (d, d_h), (d, d_h)]
    draws = [torch.randn(shape).double() for shape in shapes]
    found = [int(np.linalg.matrix_rank(matrix)) for matrix in logits_of(*draws).values()]
    assert found == [d_h, d_h + d_p, d_h + d_p, n]
    assert int(np.linalg.matrix_rank(chosen(SIZES))) == d_h + d_p


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
    found = head_gradients(system, "valid")
    assert {kind: set(names) for kind, names in found.items()} == {
        kind: {"query", "key"} for kind in ("encoder", "decoder", "cross")
    }
    for names in found.values():
        for gradient in names.values():
            assert len(gradient) == 4
            unit = F.normalize(gradient, dim=-1)
            assert (unit @ unit.T - torch.eye(4)).abs().max() < 0.9


def test_a_sum_misses_what_a_concatenation_has() -> None:
    words, positions = torch.randn(300, 4).double(), torch.randn(300, 2).double()
    more = torch.randn(300, 4).double(), torch.randn(300, 2).double()
    wanted = (positions * more[1]).sum(1)
    beside = [torch.cat(pair, 1) for pair in ((words, positions), more)]
    assert bilinear_error(*beside, wanted) < 1e-12
    added = [first + F.pad(second, (1, 1)) for first, second in ((words, positions), more)]
    assert bilinear_error(*added, wanted) > 0.1


def test_columns_that_words_and_positions_share() -> None:
    words = torch.diag(torch.tensor([3.0, 4, 0, 0])).double()
    places = torch.randn(9, 1).double()
    apart = torch.cat([torch.zeros(9, 3), places], 1)
    upon = torch.cat([torch.zeros(9, 1), places, torch.zeros(9, 2)], 1)
    assert shared_columns(words, apart) == (pytest.approx(0), 1)
    centred = words.numpy() - words.numpy().mean(0)
    share = (centred[:, 1] ** 2).sum() / (centred**2).sum()
    assert shared_columns(words, upon) == (pytest.approx(share), 1)


def test_the_report_over_checkpoints(
    checkpoint: Write, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [checkpoint(f"{name}_tiny") for name in ("sinusoidal", "concat", "diet_abs", "pope")]
    assert called("theorems", *folders, "--data", corpus, "--tokens", 70) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["sinusoidal", "encoder", "70", "32", "0", "32", "32"] in lines
    # Queries and keys of PoPE have twice as many columns, but not in cross-attention.
    wider = next(line for line in lines if line[:2] == ["pope", "encoder"])
    assert wider[2:6] == ["70", "64", "0", "64"]
    assert 32 < int(wider[-1]) <= 64
    assert ["pope", "cross", "70", "32", "0", "32", "32"] in lines
    assert ["concat", "input", "of", "the", "encoder", "words,", "positions", "no", "column",
            "is", "of", "both"] in lines  # fmt: skip


def test_the_report_over_few_and_random_positions(
    checkpoint: Write, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--max-source-positions", "20", "--max-target-positions", "20")
    random = ("--position-randomized", "100")
    folders = [checkpoint("learned_tiny", *few), checkpoint("sinusoidal_tiny", *few, *random)]
    assert called("theorems", *folders, "--data", corpus) == 0
    said = capsys.readouterr()
    lines = [line.split() for line in said.out.splitlines()]
    assert ["learned", "encoder", "20", "32", "0", "20", "20"] in lines
    assert "of the first 20 positions" in said.out
    assert "here the bound says nothing" in " ".join(said.out.split())
    assert "Theorem 1: over 20 tokens, not 96" in said.err
    # Also where positions are drawn at random, words and positions have one gradient.
    differ = re.findall(r"differ by ([0-9.e-]+) in the 128 columns", said.out)
    assert len(differ) == 4
    assert all(float(each) < 1e-12 for each in differ)


def test_draws_alone_need_no_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("theorems") == 0
    assert "Theorem 2" in capsys.readouterr().out
    assert called("theorems", "x.pt") == 2
    assert "checkpoints and --data BIN: give both, or neither" in capsys.readouterr().err
