"""Saved hypotheses: counts of their sentences, significance from these, and their scores again."""

from __future__ import annotations

import dataclasses
import lzma
import re
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest
from sacrebleu.metrics import BLEU

from diet_mt.corpora.parallel import read_lines
from diet_mt.evaluation import hypotheses
from diet_mt.evaluation.groups import Line
from diet_mt.evaluation.hypotheses import (
    companions,
    differences,
    put_result,
    read_hypotheses,
    read_sentences,
)
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.records import read_results
from diet_mt.evaluation.scores import counter, scores
from diet_mt.evaluation.significance import p_text, resample, sentence_bleu
from diet_mt.system.errors import UserError

from ..processes import called
from ..report.toy import SENTENCES, write_toy
from .rows import put, row, seeds_of

SHORT, LONG = "a b c d e", "f g h i j k l m n o"
Captured = pytest.CaptureFixture[str]


def test_counts_of_sentences_give_the_scores_of_sacrebleu(tmp_path: Path) -> None:
    file, path = write_toy(tmp_path)
    references = list(read_lines(path))
    saved = read_sentences([file])
    (texts,) = saved.texts.values()
    assert len(texts.reference_lengths) == SENTENCES
    sources = read_lines(path.with_suffix(".en"))
    assert texts.source_lengths == [len(line.split()) for line in sources]
    rows = read_results(file)
    assert len(saved.counts) == len(rows)
    for each in rows:
        lines, statistics = read_hypotheses(file.parent, each), saved.statistics(each)
        assert (statistics == counter(references)(lines)).all()
        alone, metric = sentence_bleu(statistics), BLEU(effective_order=True)
        for number in (0, 7, 100):
            expected = metric.sentence_score(lines[number], [references[number]]).score
            assert alone[number] == pytest.approx(expected)


def compared(
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
    references: list[str],
    **changes: str,
) -> tuple[float, float, float]:
    """Two systems, of each the translations of each seed. ``changes``: of their results."""
    count, lines, statistics = counter(references), [], {}
    for name, seeds in (("t5", first), ("shaw", second)):
        results = seeds_of(name, dict.fromkeys(range(len(seeds)), 1.0), **changes)
        lines.append(Line(name, name, tuple(results)))
        statistics |= {r.hypotheses: count(s) for r, s in zip(results, seeds, strict=True)}
    counts = Mock(statistics=lambda result: statistics[result.hypotheses])
    return resample(lines, counts).difference(*lines)


def test_a_p_value_by_hand() -> None:
    """Two sentences; the second system has the short one wrong, the first none.

    A resample draws the short one never, once or twice (1/4, 1/2, 1/4), and the second is behind
    by 0, d or 100, where d is the difference in truth: 100 - 100 * (10/15 * 9/13 * 8/11 * 7/9)^1/4
    = 28.5. Their mean is d/2 + 25 = 39.3, and 0 and 100 are more than d away from it.
    """
    difference, half, p = compared([[SHORT, LONG]], [["v w x y z", LONG]], [SHORT, LONG])
    assert difference == pytest.approx(100 - 100 * (10 / 15 * 9 / 13 * 8 / 11 * 7 / 9) ** 0.25)
    assert half == 50
    assert p == pytest.approx(1 / 2, abs=0.02)  # 10,000 draws: a standard deviation of 0.005
    # None of 10,000, one, all.
    shown = {1 / 10001: "≤ 0.0001", 2 / 10001: "0.0002", 1.0: "1.0000"}
    assert {value: p_text(value) for value in shown} == shown


def test_seeds_that_differ_make_a_difference_less_sure() -> None:
    good = [f"{SHORT} {word} {LONG}" for word in "pqrstuvwxyz"]
    half = [line.replace("f g h", "1 2 3") for line in good]
    bad = [line.replace("i", "4") for line in half]
    sure = compared([good, good], [half, half], good)
    unsure = compared([good, bad], [half, half], good)
    assert sure[0] > unsure[0] > 10
    assert sure[2] == pytest.approx(1 / 10001)
    assert unsure[2] > 0.1
    assert unsure[1] > 2 * sure[1]
    # Decodings of the same trainings have the chance of their seeds in common.
    worse = [half, [line.replace("k", "5") for line in bad]]
    apart, together = (
        compared([good, bad], worse, good, **of) for of in ({}, {"checkpoint_sha256": "c"})
    )
    assert together[0] == apart[0] > 5
    assert apart[2] > 0.1 > 0.001 > together[2]


@pytest.mark.parametrize(
    ("system", "baseline", "references"),
    [
        ([SHORT, LONG], [SHORT, LONG], [SHORT, "x y"]),  # the same
        (["x", "y"], ["v", "w"], ["a b c d", "e f g h"]),  # BLEU 0 on either side
        ([f"{SHORT} x", LONG], [f"{SHORT} y", LONG], [SHORT, LONG]),  # wrong in the same way
        ([SHORT], ["a b c x y"], [SHORT]),  # one sentence is its only resample
    ],
)
def test_no_difference_is_not_a_significant_one(
    system: list[str], baseline: list[str], references: list[str]
) -> None:
    assert compared([system], [baseline], references)[2] == 1


ROWS = Path("results/toy.en-de.jsonl")
# System and seed -> translations of the two sentences.
HYPOTHESES = {
    ("sinusoidal", 1): ["v w x y z", LONG],
    ("sinusoidal", 2): [SHORT, "p q"],
    ("diet_rel", 1): [SHORT, LONG],
    ("diet_rel", 5): [SHORT, LONG + " p"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """results/toy.en-de.jsonl with hypotheses and counts, and refs.de; the working directory."""
    (tmp_path / "refs.de").write_text(f"{SHORT}\n{LONG}\n", encoding="utf-8")
    (tmp_path / "other.de").write_text("x\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for (system, seed), lines in HYPOTHESES.items():
        add(system, seed, lines)
    return tmp_path


def add(system: str, seed: int, lines: list[str]) -> None:
    (result,) = seeds_of(system, {seed: {"diet_rel": 31.0, "sinusoidal": 30.0}.get(system, 1.0)})
    put(Path("results"), result, lines, Path("refs.de"))


def test_every_pair_is_compared(place: Path, capsys: Captured) -> None:
    add("shaw", 1, ["v w x y z", "p q"])
    assert called("compare", ROWS) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.strip().split("\n")]
    assert {line[1] for line in lines} == {"toy test"}
    assert [line[2] for line in lines] == ["diet_rel_tiny"] * 2 + ["sinusoidal_tiny"]
    assert [line[3] for line in lines] == ["to sinusoidal_tiny", "to shaw_tiny", "to shaw_tiny"]
    assert [line[-1] for line in lines] == ["seeds 2 and 2", "seeds 2 and 1", "seeds 2 and 1"]
    assert called("compare", ROWS, "--systems", "sinusoidal", "diet_rel") == 0
    (line,) = capsys.readouterr().out.strip().split("\n")
    assert "\tsinusoidal_tiny\tto diet_rel_tiny\t-" in line


def test_counts_belong_to_their_hypotheses(place: Path, capsys: Captured) -> None:
    """Those of a row that is replaced go with it; a row without counts is an error."""
    add("diet_rel", 5, [SHORT, LONG + " q"])
    rows, saved = read_results(ROWS), read_sentences([ROWS])
    assert {each.hypotheses_sha256 for each in rows} == {digest for digest, _ in saved.counts}
    write_rows(ROWS, [dataclasses.replace(rows[0], hypotheses_sha256="0" * 64), *rows[1:]])
    for command in ("compare", "leaderboard"):
        assert called(command, ROWS) == 2
        assert f"{rows[0].system}, seed {rows[0].seed}" in capsys.readouterr().err


def test_interrupted_counts_are_readable(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a second test set, if the process ends after the first of the two files."""
    (result,) = seeds_of("t5", {1: 1.0})
    once = [write_rows]
    with monkeypatch.context() as patch:
        patch.setattr(hypotheses, "write_rows", lambda *file: once.pop()(*file))
        with pytest.raises(IndexError):
            put(ROWS.parent, result, ["x"], Path("other.de"))
    put(ROWS.parent, result, ["x"], Path("other.de"))
    assert len(read_sentences([ROWS]).counts) == len(read_results(ROWS))


def test_sources_may_come_after_the_first_evaluation(place: Path) -> None:
    (place / "refs.en").write_text("a b c\nd\n", encoding="utf-8")
    result = read_results(ROWS)[0]
    lines, lengths = read_hypotheses(ROWS.parent, result), []
    for source in (False, True, False):
        put(ROWS.parent, result, lines, Path("refs.de"), source=source)
        (texts,) = read_sentences([ROWS]).texts.values()
        lengths.append(texts.source_lengths)
    assert lengths == [[], [3, 1], [3, 1]]


def test_hypotheses_are_read_from_an_archive(place: Path) -> None:
    """Of a corpus, as committed results have them; other content is an error."""
    rows = read_results(ROWS)
    saved = [read_hypotheses(ROWS.parent, each) for each in rows]
    assert saved == list(HYPOTHESES.values())
    archive = ROWS.parent / "toy.en-de.hyp.tar.xz"
    with tarfile.open(archive, "w:xz") as out:
        out.add(ROWS.parent / "toy.en-de", "toy.en-de")
    shutil.rmtree(ROWS.parent / "toy.en-de")
    assert [read_hypotheses(ROWS.parent, each) for each in rows] == saved
    again = dataclasses.replace(rows[0], threads=9)
    put_result(ROWS.parent, again, saved[0], Path("refs.de"), None)
    assert again in read_results(ROWS)
    assert not (ROWS.parent / "toy.en-de").exists()  # they are in the archive
    with pytest.raises(UserError, match=re.escape(rows[0].hypotheses)):
        read_hypotheses(ROWS.parent, dataclasses.replace(rows[0], hypotheses_sha256="0" * 64))
    whole = archive.read_bytes()
    hypotheses._files_in.cache_clear()
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=archive.name):
        read_hypotheses(ROWS.parent, rows[0])
    archive.write_bytes(lzma.compress(bytes(1 << 25)))
    with pytest.raises(UserError, match=f"{archive.name}: unpacks to more"):
        read_hypotheses(ROWS.parent, rows[0])


def test_sentences_that_differ_most(place: Path, capsys: Captured) -> None:
    """The first seeds: diet_rel's are the references, sinusoidal's are not."""
    words = ("compare", ROWS, "--systems", "diet_rel", "sinusoidal", "--show", 1)
    assert called(*words, "--references", "refs.de") == 0
    _, head, *texts = capsys.readouterr().out.strip().split("\n")
    number = int(head.split("\t")[2].removeprefix("sentence "))
    assert float(head.split("\t")[3].removesuffix(" BLEU")) > 0
    shown = {name.strip(): text for name, text in (line.split("\t") for line in texts)}
    assert shown["reference"] == shown["diet_rel.1"] == [SHORT, LONG][number - 1]
    assert shown["sinusoidal.1"] == HYPOTHESES["sinusoidal", 1][number - 1]
    assert called("compare", ROWS, "--show", 1) == 2
    assert "--systems" in capsys.readouterr().err


def test_a_field_that_differs_from_its_hypotheses_is_named() -> None:
    lines, references = ["a b c d e", "f g h i j x"], ["a b c d e", "f g h i j k"]
    again = scores(lines, references)
    new = row(**again)
    assert differences(new, again) == []
    for name in ("bleu", "chrf", "sentences", "length_ratio"):
        for value in (0, 7):
            (difference,) = differences(dataclasses.replace(new, **{name: value}), again)
            assert difference.startswith(f"{name} {value} stored, ")
    # The version of SacreBLEU is no difference.
    older = re.sub("version:.*", "version:1.0", new.bleu_signature)
    assert differences(dataclasses.replace(new, bleu_signature=older), again) == []
    other = dataclasses.replace(new, bleu_signature=new.bleu_signature.replace("13a", "intl"))
    assert differences(other, again)[0].startswith("bleu_signature ")


def test_verification_scores_and_counts_again(place: Path, capsys: Captured) -> None:
    verify = ("verify", ROWS, "--references", "refs.de")
    right = [
        dataclasses.replace(each, **scores(read_hypotheses(ROWS.parent, each), [SHORT, LONG]))
        for each in read_results(ROWS)
    ]
    write_rows(ROWS, right)
    assert called(*verify) == 0
    stored = ROWS.parent / right[1].hypotheses
    stored.rename("moved")
    capsys.readouterr()
    assert called(*verify) == 0
    assert capsys.readouterr().out.count("counts alone") == 1
    write_rows(ROWS, [right[0], dataclasses.replace(right[1], bleu=7.0), *right[2:]])
    assert called(*verify) == 2
    Path("moved").rename(stored)
    counts, _ = companions(ROWS)
    text = lzma.decompress(counts.read_bytes())
    counts.write_bytes(text.replace(b'"lengths": [5, 10]', b'"lengths": [5, 11]', 1))
    write_rows(ROWS, [dataclasses.replace(right[0], bleu=7.0), *right[1:]])
    capsys.readouterr()
    assert called(*verify) == 2
    out = capsys.readouterr().out
    assert out.count("other n-gram counts") == 1
    assert out.count("bleu 7.0 stored") == 1
    write_rows(ROWS, [])
    assert called(*verify) == 2
