"""Prepared data that are not as they were made: a line for each fault, and no training begins."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from diet_mt.corpora.binarized import bin_folder, faults, need_source, need_whole
from diet_mt.corpora.prepared import check_prepared
from diet_mt.errors import UserError

from ..prepare.running import prepare

pytestmark = pytest.mark.hostile

Damage = Callable[[Path], None]
SMALL = "--train-pairs 40 --valid-pairs 9 --test-pairs 9 --bpe-merges 40 --workers 1".split()  # noqa: SIM905
TRAIN = "train.en-de.en"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("prepared") / "demo"
    prepare("demo", "--out", out, *SMALL).ok()
    return out


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "demo"))


def test_what_is_whole_is_described(data: Path) -> None:
    wrong, summary = check_prepared(data)
    assert wrong == []
    assert summary.startswith("test 9, train 40, valid 9, dict.de.txt ")
    assert summary.endswith("checksums of 22 files")
    assert check_prepared(data / "bin") == (wrong, summary)
    need_whole(data / "bin")
    (data / "SHA256SUMS").unlink()
    assert "no SHA256SUMS" in check_prepared(data)[1]


def shortened(name: str, by: int) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:-by])

    return damage


def without(*names: str) -> Damage:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return damage


def replaced(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content) and None


def one_pair_less(folder: Path) -> None:
    """A whole index of one sentence less, with its data."""
    path = folder / "bin" / f"{TRAIN}.idx"
    raw = path.read_bytes()
    count = int.from_bytes(raw[18:26], "little")
    lengths = np.frombuffer(raw, "<i4", count, 26)[:-1]
    places = np.frombuffer(raw, "<i8", count, 26 + 4 * count)[:-1]
    head = raw[:18] + (count - 1).to_bytes(8, "little")
    path.write_bytes(head + lengths.tobytes() + places.tobytes())
    data = path.with_suffix(".bin")
    data.write_bytes(data.read_bytes()[: 2 * int(lengths.sum())])


# A damage, and what is said of which file.
QUICK = {
    "cut .bin": (shortened(f"bin/{TRAIN}.bin", 2), " bytes, but train.en-de.en.idx counts "),
    "cut .idx": (shortened(f"bin/{TRAIN}.idx", 8), f"{TRAIN}.idx: 498 bytes, but its 40 sente"),
    "empty .idx": (replaced(f"bin/{TRAIN}.idx", b""), f"{TRAIN}.idx: cut, or no index"),
    "other .idx": (replaced(f"bin/{TRAIN}.idx", b"x" * 99), f"{TRAIN}.idx: cut, or no index"),
    "missing .bin": (without(f"bin/{TRAIN}.bin"), f"{TRAIN}.bin: missing"),
    "missing .idx": (
        without(f"bin/{TRAIN}.idx"),
        f"{TRAIN}.idx: missing, the other side of train.en-de.de.idx",
    ),
    "missing side": (
        without("bin/valid.en-de.de.bin", "bin/valid.en-de.de.idx"),
        "valid.en-de.de.idx: missing, the other side of valid.en-de.en.idx",
    ),
    "cut dictionary": (shortened("bin/dict.en.txt", 2), "dict.en.txt, line "),
    "no dictionary": (without("bin/dict.de.txt"), "dict.de.txt: cannot be read"),
    "text as dictionary": (replaced("bin/dict.en.txt", b"a b c\n"), "dict.en.txt, line 1: no wor"),
    "the same word twice": (replaced("bin/dict.en.txt", b"a 1\na 1\n"), "line 2: the same word"),
    "a pair less": (one_pair_less, "39 sentences, but train.en-de.de.idx has 40"),
}


@pytest.mark.parametrize("kind", QUICK)
def test_no_training_begins_with_damaged_data(data: Path, kind: str) -> None:
    damage, said = QUICK[kind]
    damage(data)
    with pytest.raises(UserError) as caught:
        need_whole(data / "bin")
    assert said in str(caught.value)
    assert f"{data}/bin/" in str(caught.value)
    assert check_prepared(data)[0]


# What only verify looks at: all tokens, all checksums.
SLOW = {
    "a shorter dictionary": (replaced("bin/dict.en.txt", b"a 1\nb 1\n"), "dict.en.txt ends at 5"),
    "changed dictionary": (
        lambda folder: (folder / "bin/dict.en.txt").write_bytes(
            b"".join(reversed((folder / "bin/dict.en.txt").read_bytes().splitlines(True)))
        ),
        "dict.en.txt: changed since it was made, by SHA256SUMS",
    ),
    "changed references": (replaced("raw/test.de", b"x\n" * 9), "raw/test.de: changed since"),
    "shorter text": (replaced("raw/train.en", b"x\n" * 9), "40 sentences, but "),
    "no subword model": (without("bin/bpe.codes"), "bin/bpe.codes: missing"),
    "no checksums": (replaced("SHA256SUMS", b"../../x\n"), "line 1 is no checksum"),
    "empty checksums": (replaced("SHA256SUMS", b""), "bin/dict.de.txt: without a checksum in SHA"),
    "a checksum less": (
        lambda folder: (folder / "SHA256SUMS").write_bytes(
            b"".join((folder / "SHA256SUMS").read_bytes().splitlines(True)[:-1])
        ),
        "raw/valid.en: without a checksum in SHA256SUMS, which is cut",
    ),
    "no codes": (without("bpe.codes"), "/bpe.codes: missing; prepare the data again"),
    "no tokens": (lambda folder: shutil.rmtree(folder / "tok"), "/tok: missing"),
    "no subwords": (lambda folder: shutil.rmtree(folder / "bpe"), "/bpe: missing"),
}


@pytest.mark.parametrize("kind", SLOW)
def test_what_only_verify_finds(data: Path, kind: str) -> None:
    damage, said = SLOW[kind]
    damage(data)
    need_whole(data / "bin")
    wrong, _ = check_prepared(data)
    assert any(said in fault for fault in wrong), wrong


def test_to_translate_one_side_is_enough(data: Path) -> None:
    without("bin/test.en-de.de.bin", "bin/test.en-de.de.idx")(data)
    need_source(data / "bin", "test", "en")
    need_whole(data / "bin", besides="test")
    shortened("bin/test.en-de.en.bin", 2)(data)
    with pytest.raises(UserError, match=r"test\.en-de\.en\.bin: [\d,]+ bytes, but"):
        need_source(data / "bin", "test", "en")
    assert len(list(faults(data / "bin"))) == 1


def test_the_folder_of_a_corpus_is_its_bin(data: Path) -> None:
    """Also where a dictionary lies beside it, as that of a masked language model does."""
    (data / "dict.txt").write_text("a 1\n", encoding="utf-8")
    assert bin_folder(data) == bin_folder(data / "bin") == data / "bin"
