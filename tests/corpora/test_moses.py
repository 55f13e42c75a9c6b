"""Moses tokenisation: what it splits, what comes back, and that fairseq's own tokenizer agrees."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from diet_mt.corpora import moses
from diet_mt.errors import UserError

SENTENCES = [
    ("en", "The dog doesn't see the well-known cat."),
    ("en", 'She said "yes" but paid $3.50 (or 4%).'),
    ("en", "Black & white | [or] grey; red: it's all here."),
    ("de", "Die Frau ruft ihn an, weil er möchte."),
    ("de", "Ein grün-weißer Hut für 3,50 Euro!"),
    ("cs", "Pes vidí kočku, která spí."),
]


@pytest.mark.parametrize(("lang", "text"), SENTENCES)
def test_detokenize_restores_typical_sentences(lang: str, text: str) -> None:
    assert moses.detokenize(moses.tokenize(text, lang), lang) == text


def test_tokens_are_split_and_escaped_as_moses_does() -> None:
    tokens = moses.tokenize("The dog's well-known, isn't it?", "en")
    assert tokens == "The dog &apos;s well @-@ known , isn &apos;t it ?"


def test_punctuation_is_normalised() -> None:
    assert moses.tokenize("Er sagt „ja“ – nein…", "de").startswith("Er sagt &quot; ja &quot; -")


@pytest.mark.parametrize(("lang", "text"), SENTENCES)
def test_the_tokenizer_of_fairseq_gives_the_same_tokens(lang: str, text: str) -> None:
    """A raw sentence through ``--tokenizer moses`` looks as the training data did."""
    from fairseq.data import encoders

    settings = Namespace(
        tokenizer="moses", source_lang=lang, target_lang=lang,
        moses_no_dash_splits=False, moses_no_escape=False,
    )  # fmt: skip
    theirs = encoders.build_tokenizer(settings)
    assert theirs.encode(text) == moses.tokenize(text, lang)
    assert theirs.decode(theirs.encode(text)) == moses.detokenize(theirs.encode(text), lang)


@pytest.mark.parametrize(("lang", "text"), SENTENCES)
def test_the_quicker_sets_of_characters_change_nothing(lang: str, text: str) -> None:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    for line in (
        text,
        "Mr. Dr. U.S. bzw. a.m. Nr. 7. resp. no. 5 end. Next ó. é. x.",
        text.upper(),
    ):
        normal = MosesPunctNormalizer(lang).normalize(line)
        plain = MosesTokenizer(lang).tokenize(normal, aggressive_dash_splits=True, return_str=True)
        assert moses.tokenize(line, lang) == plain


def test_several_workers_keep_the_order(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("".join(f"Line {n}, it's here.\n" for n in range(4500)), encoding="utf-8")
    for workers in (1, 2):
        count = moses.tokenize_file(source, tmp_path / f"out{workers}", "en", workers)
        assert count == 4500
    assert (tmp_path / "out1").read_bytes() == (tmp_path / "out2").read_bytes()
    assert (tmp_path / "out1").read_text().split("\n")[1700] == "Line 1700 , it &apos;s here ."


def test_a_line_of_which_nothing_remains_is_named(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"fine\n\x01\x02\n")
    with pytest.raises(UserError, match=r"in, line 2: nothing left"):
        moses.tokenize_file(source, tmp_path / "out", "en", 1)
    assert not (tmp_path / "out").exists()
