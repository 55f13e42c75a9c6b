"""Plain text of several languages becomes the corpus of a masked language model."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from diet_mt.bert import tokenizer
from diet_mt.bert.tokenizer import SENTENCEPIECE, WORDPIECE

from ..corpora.wmt18 import sentences
from .conftest import Once
from .running import killed, only_error, prepare, stages_of, state, texts

STAGES = ["sentences", "sample", WORDPIECE, "pieces", "bin"]
SIZE = 130


@pytest.fixture(scope="session")
def text(once: Once) -> Path:
    """Three sentences on a line, one to three lines in a document; plain and gzipped."""

    def fill(folder: Path) -> None:
        made = sentences(300, seed=8)
        for lang, split, first, end in (
            ("en", "train", 0, 240),
            ("en", "valid", 240, 300),
            ("de", "train", 0, 90),
            ("de", "valid", 90, 120),
        ):
            lines = []
            for number in range(first, end, 3):
                lines.append(" ".join(f"{pair[lang]}." for pair in made[number : number + 3]))
                lines += [""] * (number % 4 == 0)
            data = "".join(f"{line}\n" for line in lines).encode()
            file = folder / f"{split}.{lang}"
            file.write_bytes(gzip.compress(data) if lang == "de" else data)

    return once("mlm-text", fill)


def english(text: Path, out: Path, *more: object) -> tuple[object, ...]:
    given = ("--train", text / "train.en", "--valid", text / "valid.en", "--max-length", 20)
    return ("mlm", *given, "--vocab-size", SIZE, "--out", out, "--workers", 1, *more)


def binarized(folder: Path, split: str) -> list[list[int]]:
    """The lines of a split, read with fairseq."""
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(folder / "dict.txt"))
    return [
        line.tolist() for line in data_utils.load_indexed_dataset(str(folder / split), dictionary)
    ]


@pytest.fixture(scope="session")
def corpus(text: Path, once: Once) -> Path:
    def fill(folder: Path) -> None:
        said = prepare(*english(text, folder / "out")).ok()
        assert "train.en: 21 documents, 240 sentences" in said
        assert "were cut" in said

    return once("mlm", fill) / "out"


def test_what_is_prepared(corpus: Path) -> None:
    made, bin_folder = tokenizer.load(corpus / "bin"), corpus / "bin"
    assert stages_of(corpus) == STAGES
    assert (bin_folder / "max-length").read_text(encoding="utf-8") == "20\n"
    symbols = [
        line.split(" ")[0]
        for line in (bin_folder / "dict.txt").read_text(encoding="utf-8").split("\n")[:-1]
    ]
    known = made.symbols()
    assert symbols[: len(known)] == known
    assert len(known) + 5 == SIZE, "with fairseq's five marks"
    lines = binarized(bin_folder, "train")
    # The marks of a sequence, <s> and </s>, and its pieces are 20; the end of a document is one.
    assert max(len(line) for line in lines) == 19
    assert sum(len(line) == 1 for line in lines) == 21
    marks_and_symbols = [*"0123", *symbols]
    pieces = [[marks_and_symbols[number] for number in line[:-1]] for line in lines]
    whole = made.text([piece for line in pieces for piece in line])
    text = (corpus / "sentences" / "train.en").read_text(encoding="utf-8")
    assert whole == made.text(made.pieces(text)), "all of the text, in its order"


def test_documents_are_not_crossed(corpus: Path) -> None:
    """As pretraining packs them by default."""
    from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

    cfg = MaskedLMConfig(
        data=str(corpus / "bin"), tokens_per_sample=20, sample_break_mode="complete_doc"
    )
    blocks = MaskedLMTask.setup_task(cfg)._load_dataset_split("train", 1, False)
    lines = binarized(corpus / "bin", "train")
    documents: list[list[int]] = [[]]
    for line in lines:
        if len(line) == 1:
            documents.append([])
        else:
            documents[-1] += line
    packed = [block.tolist()[1:] for block in (blocks[n] for n in range(len(blocks)))]
    assert [x for block in packed for x in block] == [x for doc in documents for x in doc]
    begins = {tuple(document[:3]) for document in documents if document}
    ends = sum(tuple(block[:3]) in begins for block in packed)
    assert ends >= len([document for document in documents if document])
    assert max(map(len, packed)) <= 19


def test_a_second_run_does_nothing(text: Path, corpus: Path) -> None:
    before = state(corpus)
    assert prepare(*english(text, corpus)).ok().count("done before") == len(STAGES)
    other = only_error(prepare(*english(text, corpus, "--vocab-size", 131)))
    assert f"{WORDPIECE} was made with --vocab-size {SIZE}, not --vocab-size 131" in other
    assert "--language en, not --language de_DE:en" in only_error(
        prepare(*english(text, corpus, "--language", "de_DE:en"))
    )
    assert state(corpus) == before


def test_what_was_interrupted_goes_on(
    text: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE", "de_DE:en")  # gettext's: it is not that of the text
    out = tmp_path / "out"
    for end in ("sentences.part/valid.en", f"{WORDPIECE}.part", "pieces.part/valid"):
        killed("os.rename", f"{end}.part", *english(text, out))
    assert "   train: done before" in prepare(*english(text, out)).ok()
    assert stages_of(out) == STAGES
    assert texts(out) == texts(corpus)
    assert not list(out.rglob("*.part"))


def test_several_languages_by_sentencepiece(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train, valid = (text / "train.en", f"de:{text}/train.de"), (f"de:{text}/valid.d*",)
    files = ("--train", *train, "--valid", *valid, f"en:{text}/valid.en")
    own = ("--setting", "multilingual", "--vocab-size", 138, "--workers", 2)
    said = prepare("mlm", *files, *own, "--out", out).ok()
    # 240 and 90 sentences: their square roots are 15.5 and 9.5.
    for words in (
        "sample: 125 sentences of de, from 90",
        "sample: 205 sentences of en, from 240",
        "train: de, 1.63 times",
        "train: en, 1.00 times",
        "valid.de: 3 documents, 30 sentences",
    ):
        assert words in said, words
    assert {path.name for path in (out / "bin").iterdir()} == {
        *("dict.txt", "max-length", "preprocess.log", SENTENCEPIECE),
        *("train.bin", "train.idx", "valid.bin", "valid.idx"),
    }
    assert len(tokenizer.load(out / "bin").symbols()) + 5 == 138


def test_a_vocabulary_can_be_mended_until_it_is_made(text: Path, tmp_path: Path) -> None:
    """What came before it does not depend on its size and is kept."""
    out = tmp_path / "out"
    for size, what in ((10, "WordPiece: 10 are too few"), (9000, "give a smaller size")):
        message = only_error(prepare(*english(text, out, "--vocab-size", size)))
        assert what in message
        assert not (out / WORDPIECE).exists()
    said = killed("open", "pieces.part/train.part", *english(text, out))
    assert "sentences: done before" in said
    assert "== wordpiece.json: " in said
