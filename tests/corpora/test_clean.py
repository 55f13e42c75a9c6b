"""Cleaning training pairs: every filter by itself, then all of them over files."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import clean, tidy
from diet_mt.errors import UserError

from . import wmt18

DE = "Der alte Mann liest am Abend gern in der langen Zeitung."
EN = "In the evening the old man likes to read the long newspaper."
LIMITS = clean.Limits(("de", "en"))


def _fault(source: str, target: str, **changed: object) -> str:
    limits = clean.Limits(("de", "en"), **changed)  # type: ignore[arg-type]
    found = clean.clean([(source.encode() + b"\n", target.encode() + b"\n")], limits)
    assert len(found.kept) + sum(found.dropped.values()) == found.read == 1
    return "".join(found.dropped)


def test_a_good_pair_stays_as_it_is() -> None:
    assert _fault(DE, EN) == ""
    found = clean.clean([(DE.encode(), EN.encode())], LIMITS)  # the last line may lack its end
    assert found.kept == [(DE, EN)]
    assert not any(found.mended.values())


@pytest.mark.parametrize(("source", "target"), [("", EN), (DE, " \u200b\u00a0"), ("", "")])
def test_an_empty_side(source: str, target: str) -> None:
    assert _fault(source, target) == clean.EMPTY


@pytest.mark.parametrize("sides", [(b"a \xff", b"a"), (b"a", b"\xc3"), (b"\xed\xa0\x80", b"a")])
def test_invalid_utf8(sides: tuple[bytes, bytes]) -> None:
    assert clean.clean([sides], LIMITS).dropped == {clean.INVALID: 1}


@pytest.mark.parametrize("lang", ["de", "en"])
def test_an_overlong_side(lang: str) -> None:
    def fault(side: str, **limits: object) -> str:
        pair = (side, EN) if lang == "de" else (DE, side)
        return _fault(*pair, ratio=1e9, certainty=2.0, **limits)

    assert fault("a " * 250) == ""
    assert fault("a " * 251) == clean.OVERLONG
    assert fault("a" * 2000) == ""
    assert fault("a" * 2001) == clean.OVERLONG
    assert fault("a a a", max_words=2) == clean.OVERLONG
    assert fault("ä" * 81, max_chars=80) == clean.OVERLONG


def test_length_ratio() -> None:
    """Fifteen characters are added to both: 85 against 35 is two to one."""
    assert _fault("a" * 85, "b" * 35, certainty=2.0) == ""
    assert _fault("a" * 86, "b" * 35, certainty=2.0) == clean.RATIO
    assert _fault("b" * 35, "a" * 86, certainty=2.0) == clean.RATIO
    assert _fault("a" * 86, "b" * 35, certainty=2.0, ratio=3.0) == ""
    assert _fault("Ja, gern.", "Yes.") == ""


def test_a_wrong_language_on_either_side() -> None:
    assert _fault(EN, EN) == clean.LANGUAGE
    assert _fault(DE, DE) == clean.LANGUAGE
    assert _fault(EN, DE, certainty=2.0) == ""


def test_short_lines_are_not_asked_for_their_language() -> None:
    assert _fault("He reads with the others.", "He reads with the others.") == ""
    short = {"language_chars": 10, "certainty": 0.5}
    assert _fault("He reads with the others.", "He reads with it.", **short) == clean.LANGUAGE


def test_the_first_fault_is_counted() -> None:
    assert _fault("x " * 300, "") == clean.EMPTY
    assert _fault("x " * 300, "y") == clean.OVERLONG


def test_duplicates_are_pairs_not_sides() -> None:
    pairs = [("a", "b"), ("a", "c"), ("c", "b"), ("a", "b"), ("ab", ""), ("a\nb", "")]
    assert len({clean.digest(*pair) for pair in pairs}) == len(set(pairs)) == 5


def _corpus(folder: Path, source: bytes, target: bytes) -> Path:
    folder.mkdir()
    for split in ("train", "valid", "test", "test1"):
        (folder / f"{split}.de").write_bytes(source if split == "train" else b"x  \xe2\x80\x8by\n")
        (folder / f"{split}.en").write_bytes(target if split == "train" else b"z\r\n")
    return folder


def _run(folder: Path, name: str, workers: int = 1) -> Path:
    out = folder / name
    clean.clean_corpus(folder / "raw", out, LIMITS, folder / f"{name}.tsv", workers)
    return out


def test_all_filters_over_files_keep_the_sides_together(tmp_path: Path) -> None:
    good = wmt18.sentences(30, seed=4)
    dirt = wmt18.dirt("de")
    pairs = [(s["de"].encode(), s["en"].encode()) for s in good] + [pair for _, pair in dirt]
    sides = [b"".join(line + b"\n" for line in side) for side in zip(*pairs, strict=True)]
    _corpus(tmp_path / "raw", sides[0], sides[1])
    _run(tmp_path, "one")
    out = _run(tmp_path, "two", workers=2)
    lines = [(out / f"train.{lang}").read_text().split("\n")[:-1] for lang in ("de", "en")]
    for name in ("train.de", "train.en"):
        assert (out / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()
    counts = [row.split("\t") for row in (tmp_path / "two.tsv").read_text().split("\n")[:-1]]
    assert [row[:2] for row in counts] == [
        ["pairs", "read"],
        *(["dropped", what] for what in clean.DROPPED),
        ["pairs", "kept"],
        *(["mended", what] for what in tidy.MENDED),
        *(["source lines mended", split] for split in ("valid", "test", "test1")),
        ["rules", "version"],
    ]
    found = {what: int(count) for _, what, count in counts}
    for what in clean.DROPPED:
        assert found[what] == sum(kind == what for kind, _ in dirt), what
    for what in (tidy.WINDOWS, tidy.COMPOSED, tidy.CONTROL, tidy.INVISIBLE):
        assert found[what] == 1
    assert found["read"] == 42
    assert (
        found["kept"]
        == len(lines[0])
        == len(lines[1])
        == 42 - sum(found[what] for what in clean.DROPPED)
    )
    by_german = {s["de"]: s["en"] for s in wmt18.sentences(300, seed=0)}
    assert all(by_german.get(de, en) == en for de, en in zip(*lines, strict=True))
    raw, mended = (b"x  \xe2\x80\x8by\n", b"z\r\n"), (b"x y\n", b"z\n")
    for split in ("valid", "test"):  # from German
        assert (out / f"{split}.de").read_bytes() == mended[0]
        assert (out / f"{split}.en").read_bytes() == raw[1]
    assert (out / "test1.de").read_bytes() == raw[0]
    assert (out / "test1.en").read_bytes() == mended[1]
    assert [found[split] for split in ("valid", "test", "test1")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("source", "target", "what"),
    [
        (b"a\nb\n", b"a\n", r"raw/train\.de: 2 lines, but .*raw/train\.en has 1"),
        (b"", b"", "raw/train.de: no lines"),
        (b"\n\n", b"\n\n", "every training pair is dropped"),
    ],
)
def test_what_cannot_be_cleaned_is_one_line(
    tmp_path: Path, source: bytes, target: bytes, what: str
) -> None:
    _corpus(tmp_path / "raw", source, target)
    with pytest.raises(UserError, match=what):
        _run(tmp_path, "out")
    assert not (tmp_path / "out" / "train.de").exists()
    assert not (tmp_path / "out.tsv").exists()


def test_a_missing_side_is_refused(tmp_path: Path) -> None:
    _corpus(tmp_path / "raw", b"a\n", b"a\n")
    (tmp_path / "raw" / "train.en").unlink()
    with pytest.raises(UserError, match=r"train\.en: cannot be read"):
        clean.clean_files(tmp_path / "raw", tmp_path, LIMITS, 1)
