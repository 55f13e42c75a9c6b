"""Dictionaries read without fairseq, and damaged data: a line per fault, and no training begins."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from diet_mt.corpora.binarized import (
    bin_folder,
    check_prepared,
    dictionary_size,
    faults,
    need_source,
    need_whole,
    read_dictionary,
    write_dictionary,
)
from diet_mt.system.errors import UserError

from ..prepare.running import prepare

pytestmark = pytest.mark.hostile

OVERWRITES = "a 3\n\u00fc 2\n<unk> 1 #fairseq:overwrite\na 1 #fairseq:overwrite\nlast 0\n"


@pytest.mark.parametrize("text", ["", "a b 1\n\u3000 7\n", OVERWRITES])
def test_numbers_and_size_are_those_of_fairseq(tmp_path: Path, text: str) -> None:
    from fairseq.data import Dictionary

    path = tmp_path / "dict.txt"
    path.write_text(text, encoding="utf-8")
    theirs = Dictionary.load(str(path))
    assert read_dictionary(path) == theirs.indices
    assert dictionary_size(path) == len(theirs)
    write_dictionary(["x", "y"], path)
    assert list(read_dictionary(path)) == ["<s>", "<pad>", "</s>", "<unk>", "x", "y"] + [
        f"madeupword{number:04d}" for number in range(2)
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"word\n", 1),
        (b"word x\n", 1),
        (b" 1\n", 1),
        (b"a 1\nb 1", 2),  # cut
        (b"a 1\na 1\n", 2),
        (b"<s> 1\n", 1),
        (b"a 1\n\xff\xfe 1\n", 2),
    ],
)
def test_a_damaged_dictionary_is_refused(tmp_path: Path, content: bytes, line: int) -> None:
    (tmp_path / "dict.txt").write_bytes(content)
    with pytest.raises(UserError, match=f"dict.txt, line {line}: "):
        read_dictionary(tmp_path / "dict.txt")


Damage = Callable[[Path], object]
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


def test_complete_data_are_described(data: Path) -> None:
    """Also where a dictionary of a masked language model is next to ``bin``."""
    wrong, summary = check_prepared(data)
    assert wrong == []
    assert summary.startswith("test 9, train 40, valid 9, dict.de.txt ")
    assert summary.endswith("checksums of 22 files")
    assert check_prepared(data / "bin") == (wrong, summary)
    need_whole(data / "bin")
    (data / "SHA256SUMS").unlink()
    assert "no SHA256SUMS" in check_prepared(data)[1]
    (data / "dict.txt").write_text("a 1\n", encoding="utf-8")
    assert bin_folder(data) == bin_folder(data / "bin") == data / "bin"


def shortened(name: str, by: int) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-by])


def without(*names: str) -> Damage:
    def damage(folder: Path) -> None:
        for path in (folder / name for name in names):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def replaced(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content)


def relined(name: str, lines: slice) -> Damage:
    """Other lines of the file, or in another order."""

    def damage(folder: Path) -> None:
        some = (folder / name).read_bytes().splitlines(keepends=True)[lines]
        (folder / name).write_bytes(b"".join(some))

    return damage


def one_pair_less(folder: Path) -> None:
    """A complete index of one sentence less, with its data."""
    path = folder / "bin" / f"{TRAIN}.idx"
    raw = path.read_bytes()
    count = int.from_bytes(raw[18:26], "little")
    lengths = np.frombuffer(raw, "<i4", count, 26)[:-1]
    places = np.frombuffer(raw, "<i8", count, 26 + 4 * count)[:-1]
    head = raw[:18] + (count - 1).to_bytes(8, "little")
    path.write_bytes(head + lengths.tobytes() + places.tobytes())
    data = path.with_suffix(".bin")
    data.write_bytes(data.read_bytes()[: 2 * int(lengths.sum())])


# A damage, and the file and value that its fault names.
QUICK = {
    "cut .bin": (shortened(f"bin/{TRAIN}.bin", 2), " bytes, but train.en-de.en.idx counts "),
    "cut .idx": (shortened(f"bin/{TRAIN}.idx", 8), f"{TRAIN}.idx: 498 bytes, but its 40 sente"),
    "other .idx": (replaced(f"bin/{TRAIN}.idx", b"x" * 99), f"{TRAIN}.idx: truncated"),
    "missing .bin": (without(f"bin/{TRAIN}.bin"), f"{TRAIN}.bin: missing"),
    "missing side": (
        without("bin/valid.en-de.de.bin", "bin/valid.en-de.de.idx"),
        "valid.en-de.de.idx: missing, the other side of valid.en-de.en.idx",
    ),
    "cut dictionary": (shortened("bin/dict.en.txt", 2), "dict.en.txt, line "),
    "a pair less": (one_pair_less, "39 sentences, but train.en-de.de.idx has 40"),
}
# Checked by verify alone: all tokens, all checksums.
SLOW = {
    "a shorter dictionary": (replaced("bin/dict.en.txt", b"a 1\nb 1\n"), "dict.en.txt ends at 5"),
    "changed dictionary": (relined("bin/dict.en.txt", slice(None, None, -1)), "txt: changed since"),
    "shorter text": (replaced("raw/train.en", b"x\n" * 9), "40 sentences, but "),
    "changed references": (replaced("raw/test.de", b"x\n" * 9), "raw/test.de: changed since"),
    "no subword model": (without("bin/bpe.codes"), "bin/bpe.codes: missing"),
    "no checksums": (replaced("SHA256SUMS", b"../../x\n"), "SHA256SUMS: line 1"),
    "a checksum less": (
        relined("SHA256SUMS", slice(-1)),
        "raw/valid.en: without a checksum in SHA256SUMS, which is cut",
    ),
    "no stages": (without("bpe.codes", "tok"), "/tok: missing"),
}


@pytest.mark.parametrize("kind", [*QUICK, *SLOW])
def test_damage_is_reported(data: Path, kind: str) -> None:
    damage, text = (QUICK | SLOW)[kind]
    damage(data)
    if kind in QUICK:
        with pytest.raises(UserError) as caught:
            need_whole(data / "bin")
        assert text in str(caught.value)
        assert f"{data}/bin/" in str(caught.value)
    else:
        need_whole(data / "bin")
    wrong, _ = check_prepared(data)
    assert any(text in fault for fault in wrong), wrong


def test_one_side_is_enough_to_translate(data: Path) -> None:
    without("bin/test.en-de.de.bin", "bin/test.en-de.de.idx")(data)
    need_source(data / "bin", "test", "en")
    need_whole(data / "bin", except_prefix="test")
    shortened("bin/test.en-de.en.bin", 2)(data)
    with pytest.raises(UserError, match=r"test\.en-de\.en\.bin: [\d,]+ "):
        need_source(data / "bin", "test", "en")
    assert len(list(faults(data / "bin"))) == 1
