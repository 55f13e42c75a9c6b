"""Tokenizers of encoders: every piece is in the dictionary, and its span in the text is known."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece

from diet_mt.bert import tokenizer
from diet_mt.bert.tokenizer import SENTENCEPIECE, WORDPIECE, Tokenizer, learn_wordpiece, posix_cksum
from diet_mt.system.errors import UserError

from ..corpora.wmt18 import sentences
from .made import KINDS, write_tokenizer

# Whatever users have: accents composed and not, other scripts, white space of all kinds, text like
# special symbols of fairseq or BERT, characters that lose or gain length as small letters.
TEXTS = [
    "The old woman reads, because „Größe“ matters …",
    "  Leading and trailing \t white\u2028space\u00a0of\u0085all\u3000kinds \n",
    "cafe\u0301 café CAFÉ na\u00efve İstanbul ﬁne ½ ² Ⅳ ẞ",
    "<s> </s> <pad> <unk> <mask> [CLS] [SEP] [MASK] [UNK] ##ing a##b @@",
    "漢字 и ещё العَرَبِيَّة हिन्दी 😀😀 \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a▁b ▁▁ c",
    "x" * 150 + " the",
    "\x00control\x07 \ufeff characters\u200b",
    "a",
]


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer") / "made"
    return tokenizer.load(write_tokenizer(folder, request.param))


def random_texts(count: int) -> list[str]:
    """Characters of the texts above in random order."""
    generator = random.Random(7)
    pool = "".join(TEXTS)
    return ["".join(generator.choices(pool, k=generator.randint(0, 40))) for _ in range(count)]


def test_spans_cover_the_text_with_pieces_of_the_dictionary(made: Tokenizer) -> None:
    known = {*made.symbols(), "<unk>"}
    assert not {"<s>", "</s>", "<pad>", "<mask>"} & known
    for text in TEXTS + random_texts(200):
        spans = made.spans(text)
        assert [piece for piece, _, _ in spans] == made.pieces(text)
        end, between = 0, ""
        for piece, start, stop in spans:
            assert piece in known
            assert end <= start <= stop <= len(text), (text, piece, start, stop)
            assert start < stop or piece == "\u2581"
            assert text[start:stop] == text[start:stop].strip()
            between, end = between + text[end:start], stop
        between += text[end:]
        # Combining marks and invisible characters may lie between.
        assert not any(c.isalnum() or c in ".,<>[]#" for c in between), (text, between)


def test_pieces_spans_and_text(made: Tokenizer) -> None:
    text = "The  old woman reads, because."
    for piece, start, end in made.spans(text):
        letters = piece.removeprefix("##").removeprefix("\u2581")
        assert letters in (text[start:end], text[start:end].lower())
    spans = made.spans("unreadable reads")
    assert [start for piece, start, _ in spans if made.begins_word(piece)] == [0, 11]
    text = "the old woman reads because"
    assert made.text(made.pieces(f"  {text} ")) == text
    for text in ("", " \t\u2028"):
        assert made.spans(text) == made.pieces(text) == []
    assert made.text([]) == ""


def test_the_dictionary_is_the_tokenizers(made: Tokenizer, tmp_path: Path) -> None:
    from fairseq.data import Dictionary

    tokenizer.write_dictionary_of(made, tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    symbols = made.symbols()
    assert [dictionary[4 + number] for number in range(len(symbols))] == symbols
    assert all(symbol.startswith("madeupword") for symbol in dictionary.symbols[4 + len(symbols) :])
    dictionary.add_symbol("<mask>")  # as the task does
    assert len(dictionary) % 8 == 0
    line = " ".join(made.pieces("The old woman reads 漢字"))
    numbers = dictionary.encode_line(line, add_if_not_exist=False, append_eos=False)
    assert [dictionary[number] for number in numbers] == line.split()
    assert dictionary.unk() in numbers


def test_case_and_letters_that_change_their_length(tmp_path: Path) -> None:
    """By hand."""
    small = tokenizer.load(write_tokenizer(tmp_path / "small", WORDPIECE))
    places = {"cafe": [(0, 1), (1, 2), (2, 3), (3, 4)], ",": [(5, 6)], "in": [(7, 8), (8, 9)]}
    spans = []
    for word, letters in places.items():
        at = 0
        for piece in small.pieces(word):
            size = len(piece.removeprefix("##"))
            spans.append((piece, letters[at][0], letters[at + size - 1][1]))
            at += size
    assert small.spans("Cafe\u0301, İn") == spans
    cased = tokenizer.load(write_tokenizer(tmp_path / "cased", WORDPIECE, cased=True))
    assert "T" in cased.symbols()
    assert small.text(small.pieces("The Größe")) == "the große"
    assert small.symbols() == [symbol.lower() for symbol in small.symbols()]
    assert cased.text(cased.pieces("The old")) == "The old"


def test_wordpiece_is_that_of_bert(tmp_path: Path) -> None:
    """The same vocabulary through transformers' BertTokenizer."""
    transformers = pytest.importorskip("transformers")
    made = tokenizer.load(write_tokenizer(tmp_path / "made", WORDPIECE))
    marks = {"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
    lines = [f"{symbol}\n" for symbol in ("<unk>", *made.symbols(), *marks.values())]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("".join(lines), encoding="utf-8")
    theirs = transformers.BertTokenizer(str(vocabulary), unk_token="<unk>", **marks)
    for text in [text for text in TEXTS if "<s>" not in text]:
        assert theirs.tokenize(text) == made.pieces(text)


def test_the_model_depends_on_the_text_alone(tmp_path: Path) -> None:
    """In another process, too: the library draws the order of its tables anew in each."""
    sample = tmp_path / "text"
    text = "".join(f"{pair['en']}\n" for pair in sentences(200, seed=3))
    sample.write_text(text, encoding="utf-8")
    learn_wordpiece([sample], tmp_path / "one", 110)
    program = (
        "from pathlib import Path; from diet_mt.bert.tokenizer import learn_wordpiece; "
        f"learn_wordpiece([Path({str(sample)!r})], Path({str(tmp_path / 'other')!r}), 110)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    for size in (6, 9999):
        with pytest.raises(UserError, match=rf" {size} .* \d+$") as error:
            learn_wordpiece([sample], tmp_path / "none", size)
        assert not (tmp_path / "none").exists()
        possible = int(str(error.value).rpartition(" ")[2])
        learn_wordpiece([sample], tmp_path / f"of {size}", possible)


def test_a_folder_holds_one_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=str(tmp_path)):
        tokenizer.load(tmp_path)
    for name in KINDS:
        (tmp_path / name).write_bytes(b"nothing that can be read")
    with pytest.raises(UserError, match=r"wordpiece\.json and spm\.model"):
        tokenizer.load(tmp_path)
    for name in KINDS:
        with pytest.raises(UserError, match=f"{name}: "):
            tokenizer.load_file(tmp_path / name)


def test_a_model_that_changes_the_text_is_refused(tmp_path: Path) -> None:
    """Its offsets would be those of another text."""
    with open(tmp_path / SENTENCEPIECE, "wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["ﬁne words", "other ½ words"] * 20),
            model_writer=model,
            vocab_size=20,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    made = tokenizer.load(tmp_path)
    assert made.spans("words")
    with pytest.raises(UserError, match=SENTENCEPIECE):
        made.spans("ﬁne")


@pytest.mark.parametrize("data", [b"", b"a\n", bytes(range(256)) * 300])
def test_the_checksum_of_a_vocabulary_is_that_of_cksum(data: bytes) -> None:
    printed = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout
    assert posix_cksum(data) == printed.decode().strip().replace(" ", "-")
