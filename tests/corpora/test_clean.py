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


LONG = {"ratio": 1e9, "certainty": 2.0}
UNKNOWN = {"certainty": 2.0}  # the language of no line is identified
SHORT = "He reads with the others."


@pytest.mark.parametrize(
    ("source", "target", "limits", "fault"),
    [
        ("", EN, {}, clean.EMPTY),
        (DE, " \u200b\u00a0", {}, clean.EMPTY),
        ("x " * 300, "", {}, clean.EMPTY),  # the first fault is counted
        ("x " * 300, "y", {}, clean.OVERLONG),
        ("a " * 250, EN, LONG, ""),
        ("a " * 251, EN, LONG, clean.OVERLONG),
        (DE, "a " * 251, LONG, clean.OVERLONG),
        ("a" * 2000, EN, LONG, ""),
        ("a" * 2001, EN, LONG, clean.OVERLONG),
        (DE, "a" * 2001, LONG, clean.OVERLONG),
        ("a a a", EN, {**LONG, "max_words": 2}, clean.OVERLONG),
        ("ä" * 81, EN, {**LONG, "max_chars": 80}, clean.OVERLONG),
        # Fifteen characters are added to both: 85 against 35 is two to one.
        ("a" * 85, "b" * 35, UNKNOWN, ""),
        ("a" * 86, "b" * 35, UNKNOWN, clean.RATIO),
        ("b" * 35, "a" * 86, UNKNOWN, clean.RATIO),
        ("a" * 86, "b" * 35, {**UNKNOWN, "ratio": 3.0}, ""),
        ("Ja, gern.", "Yes.", {}, ""),
        (EN, EN, {}, clean.LANGUAGE),
        (DE, DE, {}, clean.LANGUAGE),
        (EN, DE, UNKNOWN, ""),
        (SHORT, SHORT, {}, ""),
        (SHORT, "He reads with it.", {"language_chars": 10, "certainty": 0.5}, clean.LANGUAGE),
    ],
)
def test_the_limits_of_a_pair(
    source: str, target: str, limits: dict[str, object], fault: str
) -> None:
    assert _fault(source, target, **limits) == fault


@pytest.mark.parametrize("sides", [(b"a \xff", b"a"), (b"a", b"\xc3"), (b"\xed\xa0\x80", b"a")])
def test_invalid_utf8(sides: tuple[bytes, bytes]) -> None:
    assert clean.clean([sides], LIMITS).dropped == {clean.INVALID: 1}


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


@pytest.mark.parametrize("lang", wmt18.LANGS)
@pytest.mark.parametrize("other", wmt18.LANGS)
def test_whole_sentences_are_told_apart(lang: str, other: str) -> None:
    for sentence in wmt18.sentences(20, seed=1):
        assert clean.is_other(sentence[other], lang, 0.9) == (lang != other)


@pytest.mark.parametrize(
    ("line", "lang"),
    [
        ("Barack Obama, 4. 11. 2008, 21:00", "de"),
        ("12345 67890 12345 67890 12345 67890 1234", "cs"),
        ("Mladý učiteľ číta dlhý list pred starou stanicou, lebo prší.", "cs"),  # Slovak
    ],
)
def test_a_doubtful_line_is_left_alone(line: str, lang: str) -> None:
    assert not clean.is_other(line, lang, 0.9)


def test_a_missing_identifier_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="py3langid is not installed; install it"):
        clean._identifier.__wrapped__()


def test_unknown_codes_are_refused() -> None:
    clean.need_known(("de", "cs", "en"))
    with pytest.raises(UserError, match=r"language xx: .*--certainty 2"):
        clean.need_known(("de", "xx"))
