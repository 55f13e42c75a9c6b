"""Byte-pair encoding: learnt from both sides, undone without loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.data import subwords
from diet_mt.errors import UserError

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
    subwords.learn([tmp_path / "en", tmp_path / "de"], tmp_path / "codes", 10)
    # ab four times, cd and xy twice (xy once on each side); subword-nmt breaks ties upwards.
    assert _codes(tmp_path / "codes") == ["a b</w>", "x y</w>", "c d</w>"]


def test_the_same_words_in_another_order_give_the_same_code(
    tmp_path: Path, files: list[Path]
) -> None:
    subwords.learn(files, tmp_path / "one", 20)
    subwords.learn(files[::-1], tmp_path / "two", 20)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("merges", [1, 10, 1000])
def test_join_undoes_the_splitting(tmp_path: Path, files: list[Path], merges: int) -> None:
    subwords.learn(files, tmp_path / "codes", merges)
    bpe = subwords.load(tmp_path / "codes")
    for line in [*ENGLISH.split("\n"), "unseen Wörter @-@ e@mail x &apos;s @", "a"]:
        assert subwords.join(bpe.process_line(line)) == line


def test_a_frequent_word_stays_whole_and_a_rare_one_is_split(
    tmp_path: Path, files: list[Path]
) -> None:
    subwords.learn(files, tmp_path / "codes", 1000)
    assert subwords.load(tmp_path / "codes").process_line("running rung") == "running r@@ un@@ g"


@pytest.mark.parametrize("merges", [0, -3])
def test_no_merges_is_refused(tmp_path: Path, files: list[Path], merges: int) -> None:
    with pytest.raises(UserError, match=f"at least 1, got {merges}"):
        subwords.learn(files, tmp_path / "codes", merges)
    assert not (tmp_path / "codes").exists()


def test_the_commands(tmp_path: Path, files: list[Path]) -> None:
    for split in ("valid", "test"):
        for lang in ("en", "de"):
            (tmp_path / f"{split}.{lang}").write_text("running läuft\n", encoding="utf-8")
    codes, out = tmp_path / "codes", tmp_path / "bpe"
    assert subwords.main(["learn", "--merges", "5", "--out", str(codes), *map(str, files)]) == 0
    assert subwords.main(["apply", "--codes", str(codes), str(tmp_path), str(out), "en", "de"]) == 0
    split_text = (out / "test.de").read_text(encoding="utf-8").rstrip("\n")
    assert "@@" in split_text
    assert subwords.join(split_text) == "running läuft"
    assert (out / "train.en").read_text().count("\n") == 2
