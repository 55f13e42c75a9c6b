"""Byte-pair encoding: learnt from both sides, undone without loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import bpe

ENGLISH = "the dog is running and the cat is running\nthe dogs are sleeping\n"
GERMAN = "der Hund läuft und die Katze läuft\ndie Hunde schlafen & warten\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "train.en", tmp_path / "train.de"]
    for path, text in zip(paths, (ENGLISH, GERMAN), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def _codes(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[1:-1]


def test_merges_come_most_frequent_first_and_from_both_sides(tmp_path: Path) -> None:
    for name, text in (("en", "ab ab ab xy\n"), ("de", "ab cd cd\nxy\n")):
        (tmp_path / name).write_text(text)
    bpe.learn([tmp_path / "en", tmp_path / "de"], tmp_path / "codes", 10)
    # ab four times, cd and xy twice (xy once on each side); subword-nmt breaks ties upwards.
    assert _codes(tmp_path / "codes") == ["a b</w>", "x y</w>", "c d</w>"]


def test_the_same_words_in_another_order_give_the_same_code(
    tmp_path: Path, files: list[Path]
) -> None:
    bpe.learn(files, tmp_path / "one", 20)
    bpe.learn(files[::-1], tmp_path / "two", 20)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("merges", [1, 10, 1000])
def test_join_undoes_the_splitting(tmp_path: Path, files: list[Path], merges: int) -> None:
    bpe.learn(files, tmp_path / "codes", merges)
    lines = [*ENGLISH.split("\n"), "unseen Wörter @-@ e@mail x &apos;s @", "a"]
    assert [bpe.join(line) for line in bpe.split(lines, tmp_path / "codes")] == lines


def test_a_frequent_word_stays_whole_and_a_rare_one_is_split(
    tmp_path: Path, files: list[Path]
) -> None:
    bpe.learn(files, tmp_path / "codes", 1000)
    assert bpe.split(["running rung"], tmp_path / "codes") == ["running r@@ un@@ g"]


def test_rare_words_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "en").write_text("ab ab ab cd cd cd cd xy xy\n")
    bpe.learn([tmp_path / "en"], tmp_path / "codes", 10, max_words=2)
    assert _codes(tmp_path / "codes") == ["c d</w>", "a b</w>"]


def test_words_are_counted_alike_by_several_workers(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpe, "_COUNT_CHUNK", 1)
    counts = bpe.count_words(files, workers=2)
    assert counts == bpe.count_words(files)
    assert (counts["running"], counts["und"], counts["der"]) == (2, 1, 1)


def test_what_is_remembered_of_words_is_bounded(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    bpe.learn(files, tmp_path / "codes", 20)
    monkeypatch.setattr(bpe, "_CACHED", 3)
    lines = [f"run{n} ring{n}" for n in range(20)]
    found = [split for line in lines for split in bpe.split([line], tmp_path / "codes")]
    assert len(bpe.load(tmp_path / "codes").cache) <= 3 + 2
    assert [bpe.join(line) for line in found] == lines
