"""Cleaning of training pairs: normalization of characters, each filter, then all over files."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from diet_mt.corpora import clean
from diet_mt.system.errors import UserError

from . import wmt18

DE = "Der alte Mann liest am Abend gern in der langen Zeitung."
EN = "In the evening the old man likes to read the long newspaper."
LIMITS = clean.Limits(("de", "en"))


def _tidy(line: str) -> tuple[str, dict[str, int]]:
    mended: Counter[str] = Counter()
    return clean.tidy(line, mended), {name: count for name, count in mended.items() if count}


@pytest.mark.parametrize(
    ("line", "plain", "mended"),
    [
        ("Ein Satz, wie er ist.", "Ein Satz, wie er ist.", ()),
        ("„Größe“ – 10 €", "„Größe“ – 10 €", ()),
        ("\ufeffAnfang", "Anfang", (clean.MARK,)),
        ("Ende\r", "Ende", (clean.CARRIAGE_RETURN,)),
        ("a\x00b\x7fc\x1bd", "abcd", (clean.CONTROL,)),
        ("\x84Ja\x93 \x96 it\x92s\x85\x81", "„Ja“ – it’s…", (clean.WINDOWS,)),
        ("Gar\xadten\u200b\u200e", "Garten", (clean.INVISIBLE,)),
        ("a\ufeffb\ue000c", "abc", (clean.INVISIBLE,)),
        ("u\u0308ber", "über", (clean.COMPOSED,)),
        ("  a \t b\u00a0c\u2003d ", "a b c d", (clean.SPACES,)),
        ("a\u2028c\u2029d\x0ce\x1cf", "a c d e f", (clean.SPACES,)),
        ("\ufeff\r", "", (clean.MARK, clean.CARRIAGE_RETURN)),
    ],
)
def test_normalized_lines_and_counts(line: str, plain: str, mended: tuple[str, ...]) -> None:
    assert _tidy(line) == (plain, dict.fromkeys(mended, 1))
    assert _tidy(plain) == (plain, {})


def test_every_character_by_its_category() -> None:
    """All of Unicode: invisible characters go, white space becomes a space, the rest stays."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cs", "Cn"):  # not in UTF-8; not assigned
            continue
        plain = clean.tidy(f"a{character}b", Counter())
        if 0x80 <= code < 0xA0:
            assert plain == f"a{bytes([code]).decode('cp1252', 'ignore')}b", hex(code)
        elif character.isspace():
            assert plain == "a b", hex(code)
        elif category in ("Cc", "Cf", "Co"):
            assert plain == "ab", hex(code)
        else:
            assert plain == unicodedata.normalize("NFC", f"a{character}b"), hex(code)


def test_source_lines_keep_their_number() -> None:
    lines = ["as it is", "zero\u200bwidth", "\u200b", "nbsp\u00a0too "]
    tidied = clean.tidy_sources(iter(lines))
    assert tidied == (["as it is", "zerowidth", "\u200b", "nbsp too"], 2)


LONG = {"ratio": 1e9, "certainty": 2.0}
UNKNOWN = {"certainty": 2.0}  # the language of no line is identified
SHORT = "He reads with the others."


@pytest.mark.parametrize(
    ("source", "target", "limits", "fault"),
    [
        (DE, EN, {}, ""),
        ("", EN, {}, clean.EMPTY),
        (DE, " \u200b\u00a0", {}, clean.EMPTY),
        ("x " * 300, "", {}, clean.EMPTY),  # the first fault is counted
        ("a " * 250, EN, LONG, ""),
        ("a " * 251, EN, LONG, clean.OVERLONG),
        ("a" * 2000, EN, LONG, ""),
        ("a" * 2001, EN, LONG, clean.OVERLONG),
        ("a a a", EN, {**LONG, "max_words": 2}, clean.OVERLONG),
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
    changed = clean.Limits(("de", "en"), **limits)  # type: ignore[arg-type]
    result = clean.clean([(source.encode() + b"\n", target.encode())], changed)
    assert len(result.pairs) + sum(result.dropped.values()) == result.read == 1
    assert "".join(result.dropped) == fault
    if (source, target, fault) == (DE, EN, ""):
        assert result.pairs == [(DE, EN)]


def test_duplicates_are_pairs_not_sides() -> None:
    pairs = [("a", "b"), ("a", "c"), ("c", "b"), ("a", "b"), ("ab", ""), ("a\nb", "")]
    assert len({clean.digest(*pair) for pair in pairs}) == len(set(pairs)) == 5


def _corpus(folder: Path, source: bytes, target: bytes) -> None:
    folder.mkdir()
    for split in ("train", "valid", "test", "test1"):
        (folder / f"{split}.de").write_bytes(source if split == "train" else b"x  \xe2\x80\x8by\n")
        (folder / f"{split}.en").write_bytes(target if split == "train" else b"z\r\n")


def _run(folder: Path, name: str, workers: int = 1) -> Path:
    out = folder / name
    clean.clean_corpus(folder / "raw", out, LIMITS, folder / f"{name}.tsv", workers)
    return out


def test_all_filters_over_files_keep_the_sides_together(tmp_path: Path) -> None:
    dirt = wmt18.dirt("de")
    pairs = [(s["de"].encode(), s["en"].encode()) for s in wmt18.sentences(30, seed=4)]
    pairs += [pair for _, pair in dirt]
    sides = [b"".join(line + b"\n" for line in side) for side in zip(*pairs, strict=True)]
    _corpus(tmp_path / "raw", sides[0], sides[1])
    _run(tmp_path, "one")
    out = _run(tmp_path, "two", workers=2)
    lines = [(out / f"train.{lang}").read_text().split("\n")[:-1] for lang in ("de", "en")]
    for name in ("train.de", "train.en"):
        assert (out / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()
    rows = [row.split("\t") for row in (tmp_path / "two.tsv").read_text().split("\n")[:-1]]
    counts = {what: int(count) for _, what, count in rows}
    for what in clean.DROPPED:
        assert counts[what] == sum(kind == what for kind, _ in dirt), what
    assert counts["read"] == 42
    remaining = 42 - sum(counts[what] for what in clean.DROPPED)
    assert counts["kept"] == len(lines[0]) == len(lines[1]) == remaining
    by_german = {s["de"]: s["en"] for s in wmt18.sentences(300, seed=0)}
    assert all(by_german.get(de, en) == en for de, en in zip(*lines, strict=True))
    raw, mended = (b"x  \xe2\x80\x8by\n", b"z\r\n"), (b"x y\n", b"z\n")
    for split in ("valid", "test"):  # from German
        assert (out / f"{split}.de").read_bytes() == mended[0]
        assert (out / f"{split}.en").read_bytes() == raw[1]
    assert (out / "test1.de").read_bytes() == raw[0]
    assert (out / "test1.en").read_bytes() == mended[1]
    assert [counts[split] for split in ("valid", "test", "test1")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [(b"a\nb\n", b"a\n", r"raw/train\.de: 2"), (b"", b"", "raw/train.de"), (b"\n", b"\n", "raw: ")],
    ids=["unequal", "no lines", "none left"],
)
def test_an_invalid_corpus_leaves_nothing(
    tmp_path: Path, source: bytes, target: bytes, named: str
) -> None:
    _corpus(tmp_path / "raw", source, target)
    with pytest.raises(UserError, match=named):
        _run(tmp_path, "out")
    assert not (tmp_path / "out" / "train.de").exists()
    assert not (tmp_path / "out.tsv").exists()


def test_languages_of_whole_sentences() -> None:
    for lang in wmt18.LANGS:
        for other in wmt18.LANGS:
            for sentence in wmt18.sentences(20, seed=1):
                assert clean.is_other(sentence[other], lang, 0.9) == (lang != other)
    for line, lang in (
        ("Barack Obama, 4. 11. 2008, 21:00", "de"),
        ("12345 67890 12345 67890 12345 67890 1234", "cs"),
        ("Mladý učiteľ číta dlhý list pred starou stanicou, lebo prší.", "cs"),  # Slovak
    ):
        assert not clean.is_other(line, lang, 0.9)


def test_unknown_languages_and_a_missing_identifier(monkeypatch: pytest.MonkeyPatch) -> None:
    clean.need_known(("de", "cs", "en"))
    with pytest.raises(UserError, match=r"language xx: .*--certainty 2"):
        clean.need_known(("de", "xx"))
    monkeypatch.setattr(clean, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="py3langid"):
        clean._identifier.__wrapped__()
