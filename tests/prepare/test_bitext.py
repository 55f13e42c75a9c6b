"""Parallel text of the user's, on sentences of our own."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from diet_mt.corpora import recipes

from .originals import SIZES
from .running import SMALL, Outcome, prepare, state


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """German and English, half of it packed; two training pairs are there twice."""
    folder = tmp_path / "mine"
    recipes.write_demo(folder, SIZES)
    for lang in ("de", "en"):
        train, test = folder / f"train.{lang}", folder / f"test.{lang}"
        lines = train.read_bytes().splitlines(keepends=True)
        train.write_bytes(b"".join([*lines, *lines[:2]]))
        (folder / f"test.{lang}.gz").write_bytes(gzip.compress(test.read_bytes()))
        test.unlink()
    return folder


def prepared(folder: Path, *more: object) -> Outcome:
    words = ("bitext", "de-en", "--from", folder, "--out", folder.parent / "out")
    return prepare(*words, *SMALL, *more)


def test_parallel_text_of_the_user(folder: Path) -> None:
    out = folder.parent / "out"
    said = prepared(folder).ok()
    kept = int((out / "clean.tsv").read_text().split("pairs\tkept\t")[1].split("\n")[0])
    assert SIZES["train"] / 2 < kept <= SIZES["train"]
    assert "dropped\tduplicate pair\t" in (out / "clean.tsv").read_text()
    for split, count in {**SIZES, "train": kept}.items():
        assert f"{split}.de: {count}, expected {count}" in said
    given = gzip.decompress((folder / "test.en.gz").read_bytes())
    assert (out / "raw" / "test.en").read_bytes() == given
    assert (out / "settings").read_text().startswith("de-en BPE_MERGES=150 DICTIONARY=32768 CLEAN=")
    assert (out / "settings").read_text().endswith(f" from={folder}\n")
    # The folder is not needed again, and another one is not taken for it.
    moved = folder.rename(folder.parent / "other")
    before = state(out)
    assert prepared(folder).ok().count("done before") == 6
    assert f"was made with from={folder}, not from={moved}" in prepared(moved).err
    assert state(out) == before


def shorter(folder: Path) -> None:
    (folder / "train.de").write_text("Eins.\n")


def invalid(folder: Path) -> None:
    (folder / "valid.de").write_bytes(b"Ja.\n\xff\n")


def twice(folder: Path) -> None:
    (folder / "valid.en").unlink()
    (folder / "valid.en").symlink_to(folder / "train.en")


def damaged(folder: Path) -> None:
    (folder / "test.en.gz").write_bytes((folder / "test.en.gz").read_bytes()[:-9])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (shorter, "{f}/train.en: 302 lines, but {f}/train.de has 1; line n of one must translate"),
        (invalid, "{f}/valid.de, line 2: not valid UTF-8"),
        (twice, "{f}/valid.en: given more than once, as {f}/train.en"),
        (damaged, "{f}/test.en.gz"),
    ],
)
def test_invalid_text_is_named_where_it_stands(
    folder: Path, change: Callable[[Path], None], what: str
) -> None:
    change(folder)
    found = prepared(folder)
    assert found.status == 2
    assert what.format(f=folder) in found.err
    assert not (folder.parent / "out" / "raw").exists()


def test_pairs_that_are_held_out_and_trained_on_are_counted(folder: Path) -> None:
    for lang in ("de", "en"):
        train = (folder / f"train.{lang}").read_bytes().splitlines(keepends=True)
        # The last of them without the end of its line.
        (folder / f"valid.{lang}").write_bytes(b"".join([*train[:2], *train[5:7]])[:-1])
    said = prepared(folder).ok()
    assert "valid: 4 pairs, 4 of them in train, too" in said
    assert f"test: {SIZES['test']} pairs, 0 of them in train, too" in said


def test_pieces_and_a_language_that_nobody_knows(folder: Path) -> None:
    for german in folder.glob("*.de*"):
        german.rename(folder / german.name.replace(".de", ".xx"))
    out = folder.parent / "out of xx"
    words = ("bitext", "xx-en", "--from", folder, "--out", out, "--subwords", "spm")
    found = prepare(*words)
    assert "language xx: " in found.err
    assert "--certainty 2" in found.err
    assert not out.exists()
    large = prepare(*words, "--certainty", 2)
    assert re.search(r"32000 pieces .*<= \d+", large.err)
    small = (*words, "--certainty", 2, "--spm-size", 100)
    assert "remove it, or give another --out" in prepare(*small).err
    shutil.rmtree(out)
    prepare(*small).ok()
    assert (out / "bin" / "spm.model").exists()


def test_uncleaned_training_text_must_be_whole(folder: Path) -> None:
    with (folder / "train.de").open("ab") as file:
        file.write(b"\n")
    with (folder / "train.en").open("ab") as file:
        file.write(b"One.\n")
    prepared(folder, "--dry-run").ok()
    assert f"{folder}/train.de, line 303: empty" in prepared(folder, "--no-clean").err
    assert "dropped, empty side: 1" in prepared(folder).ok()
