"""``diet-mt figures``: what it writes is what the checkpoint says, by computations of its own."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from diet_mt.evaluation.json_rows import read_rows
from diet_mt.figures import FigureConfig
from diet_mt.figures.capture import open_systems
from diet_mt.figures.draw import draw, measure
from diet_mt.figures.patterns import (
    BORDER,
    SEGMENT_TOKENS,
    PatternRow,
    pattern_pictures,
    patterns,
)
from diet_mt.report.blocks import Table
from diet_mt.report.style import pyplot

from ..oracle.encodings import bucket
from ..processes import called
from .conftest import saved

Write = Callable[..., Path]
KINDS = ("encoder", "decoder", "cross")
N = 9  # positions


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def measured(
    folders: list[Path], data: Path, out: Path, *figures: str, **config: Any
) -> list[dict[str, Any]]:
    """The rows of the last of these figures, without pictures."""
    files = measure(folders, data, out, figures, FigureConfig(**config))
    return rows(files[-1])


def table(state: dict[str, torch.Tensor], kind: str, name: str, layer: int | None = None) -> Any:
    """A position table of a checkpoint: the one that layers share, or that of one layer."""
    stack = "encoder" if kind == "encoder" else "decoder"
    module = "encoder_attn_positions" if kind == "cross" else "self_attn_positions"
    place = "shared" if layer is None else f"layers.{layer}"
    return state[f"{stack}.{module}.{place}.{name}"].double().numpy()


def by_hand(name: str, state: dict[str, torch.Tensor], kind: str, layer: int) -> np.ndarray:
    """Positional logits (H, N, N) of a system, from its parameters alone."""
    out = np.zeros((4, N, N))
    for head in range(4):
        for i in range(N):
            for j in range(N):
                if name == "diet_abs":
                    query, key = (table(state, kind, part)[head] for part in ("query", "key"))
                    out[head, i, j] = query[i] @ key[j]
                elif name == "diet_rel":
                    line = table(state, kind, "by_offset", layer)[head]
                    out[head, i, j] = line[(len(line) + 1) // 2 - 1 + i - j]
                else:
                    number = bucket(j - i, 32, 128, causal=kind == "decoder")
                    out[head, i, j] = table(state, kind, "by_bucket")[head, number]
    return out


@pytest.mark.parametrize("name", ["diet_abs", "diet_rel", "t5"])
def test_what_is_drawn_is_what_the_parameters_say(
    name: str, checkpoint: Write, corpus: Path, tmp_path: Path
) -> None:
    folder = checkpoint(f"{name}_tiny")
    drawn = measured([folder], corpus, tmp_path, "patterns", positions=N, sentences=2)
    state = saved(folder)
    shown = {(row["attention"], layer) for row in drawn for layer in row["layers"]}
    assert shown == {(kind, layer) for kind in KINDS for layer in range(1, 5)}
    for row in drawn:
        expected = by_hand(name, state, row["attention"], row["layers"][0] - 1)[row["head"] - 1]
        causal = row["attention"] == "decoder"
        if row["by_distance"]:
            assert name != "diet_abs"
            line = [expected[max(d, 0), max(-d, 0)] for d in range(0 if causal else 1 - N, N)]
            assert row["first_distance"] == (0 if causal else 1 - N)
            np.testing.assert_allclose(row["by_distance"], line, rtol=1e-3)
        else:
            assert name == "diet_abs"
            values = np.array(row["values"], dtype=float)
            open_keys = np.tril(np.ones((N, N))) if causal else np.ones((N, N))
            assert np.array_equal(np.isnan(values), open_keys == 0)
            np.testing.assert_allclose(values[open_keys == 1], expected[open_keys == 1], rtol=1e-3)
    pictures = dict(pattern_pictures(read_rows(PatternRow, tmp_path / "patterns.jsonl")))
    pyplot().close("all")
    heat_maps = [f"patterns.{name}.{kind}" for kind in KINDS]
    assert list(pictures) == (heat_maps if name == "diet_abs" else [f"distance.{name}"])


def test_pictures_are_of_the_numbers_alone(
    checkpoint: Write, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--position-in", "encoder", "--encoder-layers", "1", "--decoder-layers", "1")
    folders = [checkpoint(name, *where) for name in ("t5_tiny", "diet_abs_tiny")]
    words = ("--data", corpus, "--positions", N, "--sentences", 2, "--rank-tokens", 15)
    only = ("--only", "rank", "patterns", "similarity", "heads")
    assert called("figures", *folders, *words, *only, "--out", tmp_path) == 0
    table = capsys.readouterr().out
    drawn = {file: file.read_bytes() for file in tmp_path.glob("*.[ps][nv]g")}
    names = ["distance.t5", "patterns.diet_abs.encoder", "rank", "similarity", "spectrum"]
    assert sorted({file.stem for file in drawn}) == names
    for file in drawn:
        file.unlink()
    assert called("figures", "--out", tmp_path) == 0
    assert capsys.readouterr().out == table
    assert {file: file.read_bytes() for file in drawn} == drawn
    assert called("figures", "--out", tmp_path, "--only", "heads", "--format", "markdown") == 0
    assert "| attention" in capsys.readouterr().out
    rank = tmp_path / "rank.jsonl"
    packed = gzip.compress(rank.read_bytes())
    rank.with_name("rank.jsonl.gz").write_bytes(packed)
    rank.unlink()
    assert called("figures", "--out", tmp_path, "--only", "rank") == 0
    (tmp_path / "heads.jsonl").write_text("{}\n", encoding="utf-8")
    assert called("figures", "--out", tmp_path, "--only", "heads") == 2
    assert "heads.jsonl, line 1" in capsys.readouterr().err


def test_ranks_of_checkpoints_keep_to_theorem_1(
    checkpoint: Write, corpus: Path, tmp_path: Path
) -> None:
    """Width 24 in 4 heads of size 6, over 15 tokens; positions of rank 4."""
    width = ("--encoder-embed-dim", "24", "--decoder-embed-dim", "24")
    folders = [
        checkpoint("learned_tiny", *width),
        checkpoint("diet_abs_tiny", *width, "--position-rank", "4"),
    ]
    by_kind: dict[tuple[str, str], set[int]] = {}
    for row in measured(folders, corpus, tmp_path, "rank", rank_tokens=15, sentences=3):
        by_kind.setdefault((row["system"], row["what"]), set()).add(row["rank"])
    assert by_kind == {
        ("learned", "logits"): {6},
        ("learned", "positional logits"): {6},
        ("diet_abs", "logits"): {10},
        ("diet_abs", "positional logits"): {4},
    }


def test_similarity_and_heads(
    checkpoint: Write, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The heads of a table that layers share count once."""
    folders = [checkpoint("learned_tiny"), checkpoint("diet_rel_tiny"), checkpoint("diet_abs_tiny")]
    drawn = measured(folders, corpus, tmp_path, "similarity", "heads", positions=N)
    assert "similarity: without diet_rel;" in capsys.readouterr().err
    vectors = saved(folders[0])["encoder.embed_positions.weight"][:N].double().numpy()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[~np.eye(N, dtype=bool)]
    first = rows(tmp_path / "similarity.jsonl")[0]
    assert (first["system"], first["place"]) == ("learned", "input of the encoder")
    assert first["mean"] == pytest.approx(cosines.mean(), abs=1e-4)
    assert sum(first["histogram"]) == N * (N - 1)
    assert len(drawn) == 3 * 3 * 4 * 4
    state = saved(folders[1])
    for row in drawn:
        shared = {"learned": [], "diet_rel": [row["layer"]], "diet_abs": [1, 2, 3, 4]}
        assert row["positions_layers"] == shared[row["system"]]
        if row["system"] == "learned":
            assert row["positions_near"] is None
        if (row["system"], row["attention"]) == ("diet_rel", "cross"):
            logits = by_hand("diet_rel", state, "cross", row["layer"] - 1)[row["head"] - 1]
            weights = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            near = [weights[i, max(i - 2, 0) : i + 3].sum() for i in range(N)]
            assert row["positions_near"] == pytest.approx(np.mean(near), abs=1e-4)
    (table,) = draw(tmp_path / "heads.jsonl")[:1]
    assert isinstance(table, Table)
    counted = {
        (line[0], line[1]): sum(int(number) for number in re.findall(r"\d+", line[3]))
        for line in table.rows
    }
    heads = {"learned": 0, "diet_rel": 4 * 4, "diet_abs": 4}
    assert counted == {(kind, name): heads[name] for kind in KINDS for name in heads}


def test_equal_inputs_of_encoder_and_decoder_are_drawn_once(
    checkpoint: Write, corpus: Path, tmp_path: Path
) -> None:
    folders = [checkpoint("sinusoidal_tiny"), checkpoint("learned_tiny")]
    drawn = measured(folders, corpus, tmp_path, "similarity")
    assert [(row["system"], row["place"]) for row in drawn] == [
        ("sinusoidal", "input of the encoder and decoder"),
        ("learned", "input of the encoder"),
        ("learned", "input of the decoder"),
    ]


def test_the_longest_sentences_of_training(checkpoint: Write, corpus: Path, tmp_path: Path) -> None:
    """Of pairs that the model takes: with the end mark up to 8 of 8 English tokens, 10 German."""
    folder = checkpoint("diet_rel_tiny")
    (whole,) = open_systems([folder], corpus)
    assert whole.trained == {"encoder": (9, 9), "decoder": (10, 10), "cross": (10, 9)}
    short = checkpoint("diet_rel_tiny", "--max-source-positions", "8")
    (cut,) = open_systems([short], corpus)
    assert cut.trained["cross"] == (9, 8)
    drawn = measured([folder], corpus, tmp_path, "patterns", "rank", rank_tokens=15)
    assert {tuple(row["trained"]) for row in drawn} == set(whole.trained.values())
    for name in ("rank", "patterns"):
        draw(tmp_path / f"{name}.jsonl")
    assert "9 source, 10 target tokens" in (tmp_path / "rank.svg").read_text()
    assert "dotted: the largest of training" in (tmp_path / "distance.diet_rel.svg").read_text()


def test_segments_have_their_border(checkpoint: Write, corpus: Path, tmp_path: Path) -> None:
    options = ("--segment-encoding", "per-head", "--max-source-positions", "40")
    folder = checkpoint("roberta_diet_rel_tiny", *options, "--tokens-per-sample", "40")
    data = corpus / "masked"
    drawn = measured([folder], data, tmp_path, "segments", sentences=2)
    draw(tmp_path / "segments.jsonl")
    assert (tmp_path / "segments.roberta_diet_rel.png").exists()
    (system,) = open_systems([folder], data)
    plain = patterns(system, "valid", SEGMENT_TOKENS, 2)
    state = saved(folder)
    prefix = "encoder.sentence_encoder"
    assert len(drawn) == 16
    for row in drawn:
        layer, head = row["layers"][0] - 1, row["head"] - 1
        own = state[f"{prefix}.segment_positions.layers.{layer}.weight"][head].double()
        added = torch.tensor(row["values"]) - plain[layer].logits[head]
        number = (torch.arange(SEGMENT_TOKENS) >= BORDER).long()
        torch.testing.assert_close(added, own[number][:, number], atol=2e-3, rtol=1e-3)


def test_all_are_shown_over_the_tokens_that_each_can_read(
    checkpoint: Write, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In heads over the same sentences, too: with eight positions none of nine tokens."""
    folders = [checkpoint("learned_tiny", "--max-source-positions", "8"), checkpoint("rotary_tiny")]
    heads = measured(folders, corpus, tmp_path, "rank", "similarity", "heads", rank_tokens=15)
    lines = capsys.readouterr().err.split("\n")
    assert [line.partition(" ")[0] for line in lines if "over 8 tokens" in line] == [
        *("rank:", "rank:", "similarity:", "heads:")
    ]
    for file in (rows(tmp_path / "rank.jsonl"), heads):
        assert {(row["system"], row["tokens"]) for row in file} == {("learned", 8), ("rotary", 8)}
    (count,) = {row["sentences"] for row in heads}
    assert 0 < count < 20


def test_random_positions_are_those_of_decoding(
    checkpoint: Write, corpus: Path, tmp_path: Path
) -> None:
    options = ("--position-randomized", "100", "--max-source-positions", "20")
    options += ("--max-target-positions", "20")
    folder = checkpoint("learned_tiny", *options)
    state = saved(folder)
    places = torch.randperm(100, generator=torch.Generator().manual_seed(1))[:20].sort().values[:9]
    for row in measured([folder], corpus, tmp_path, "similarity", positions=9):
        stack = row["place"].rpartition(" ")[2]
        (table,) = (
            value for name, value in state.items() if name.startswith(f"{stack}.embed_positions")
        )
        shown = F.normalize(table[places].double(), dim=-1)
        assert row["by_distance"][1] == pytest.approx(
            float((shown[1:] * shown[:-1]).sum(-1).mean()), abs=1e-3
        )


def test_two_checkpoints_of_a_folder_are_told_apart(checkpoint: Write, corpus: Path) -> None:
    folder = checkpoint("alibi_tiny")
    (folder / "checkpoint_last.pt").write_bytes((folder / "checkpoint_best.pt").read_bytes())
    other = folder.parent / "more" / folder.name
    other.mkdir(parents=True)
    (other / "checkpoint_best.pt").write_bytes((folder / "checkpoint_best.pt").read_bytes())
    systems = open_systems([folder, folder / "checkpoint_last.pt"], corpus)
    assert [system.name for system in systems] == ["alibi", "alibi.checkpoint_last"]
    systems = open_systems([folder, other], corpus)
    assert [each.name for each in systems] == [f"{folder.parent.name}.alibi", "more.alibi"]


def test_what_is_not_drawn_leaves_what_was(checkpoint: Write, corpus: Path, tmp_path: Path) -> None:
    before = measured([checkpoint("alibi_tiny")], corpus, tmp_path, "patterns", sentences=2)
    measured([checkpoint("none_tiny")], corpus, tmp_path, "patterns", "heads", sentences=2)
    assert rows(tmp_path / "patterns.jsonl") == before


def test_nothing_is_made_of_wrong_inputs(
    checkpoint: Write, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkpoint("none_tiny")
    short = checkpoint("learned_tiny", "--max-source-positions", "2")
    out = ("--out", tmp_path / "out")
    for words, named in (
        ((folder, "--data", corpus, "--subset", "tst"), "'tst'"),
        ((folder, "--data", corpus / "masked"), "masked"),
    ):
        assert called("figures", *words, *out) == 2
        assert named in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    for words, named in (
        ((folder, "--only", "segments"), "segments: without none"),
        ((folder, "--only", "patterns"), "patterns: without none"),
        ((folder, "--only", "rank", "--rank-tokens", "900"), "900"),
        ((short, "--only", "heads"), "2 tokens"),
    ):
        assert called("figures", *words, "--data", corpus, *out) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert named in printed.err


def test_a_training_that_diverged(
    checkpoint: Write, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = torch.load(checkpoint("diet_rel_tiny") / "checkpoint_best.pt", weights_only=False)
    state["model"]["encoder.layers.0.fc1.weight"][0, 0] = torch.nan
    torch.save(state, tmp_path / "checkpoint_best.pt")
    assert called("figures", tmp_path, "--data", corpus, "--out", tmp_path / "out") == 2
    assert "checkpoint_best.pt" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
