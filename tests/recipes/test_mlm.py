"""Plain text of several languages becomes the corpus of a masked language model."""

from __future__ import annotations

import gzip
import signal
from pathlib import Path

import pytest

from diet_mt.bert import tokenizer
from diet_mt.bert.tokenizer import SENTENCEPIECE, WORDPIECE

from ..corpora.wmt18 import sentences
from .conftest import Once
from .runner import killed_at, only_error, run, stages_of, state, texts

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


def english(text: Path, out: Path) -> dict[str, object]:
    given = {"TRAIN": text / "train.en", "VALID": text / "valid.en", "VOCAB_SIZE": SIZE}
    return {**given, "OUT": out, "MAX_LENGTH": 20}


def binarized(folder: Path, split: str) -> list[list[int]]:
    """The lines of a split, read with fairseq."""
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(folder / "dict.txt"))
    return [
        line.tolist() for line in data_utils.load_indexed_dataset(str(folder / split), dictionary)
    ]


@pytest.fixture(scope="session")
def prepared(text: Path, once: Once) -> Path:
    def fill(folder: Path) -> None:
        result = run("mlm", **english(text, folder / "out"))
        assert result.returncode == 0, result.stderr
        assert "train.en: 21 documents, 240 sentences" in result.stderr
        assert "were cut" in result.stderr
        (folder / "said").write_text(result.stderr, encoding="utf-8")

    return once("mlm", fill) / "out"


def test_what_is_prepared(prepared: Path) -> None:
    made, bin_folder = tokenizer.load(prepared / "bin"), prepared / "bin"
    assert stages_of(prepared) == STAGES
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
    text = (prepared / "sentences" / "train.en").read_text(encoding="utf-8")
    assert whole == made.text(made.pieces(text)), "all of the text, in its order"


def test_documents_are_not_crossed(prepared: Path) -> None:
    """As scripts/pretrain.sh packs them by default."""
    from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

    cfg = MaskedLMConfig(
        data=str(prepared / "bin"), tokens_per_sample=20, sample_break_mode="complete_doc"
    )
    blocks = MaskedLMTask.setup_task(cfg)._load_dataset_split("train", 1, False)
    lines = binarized(prepared / "bin", "train")
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


def test_a_second_run_does_nothing(text: Path, prepared: Path) -> None:
    before = state(prepared)
    again = run("mlm", **english(text, prepared))
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("done before") == len(STAGES)
    assert state(prepared) == before
    other = only_error(run("mlm", **{**english(text, prepared), "VOCAB_SIZE": 131}))
    assert "was made with" in other
    assert state(prepared) == before


def test_what_was_interrupted_goes_on(text: Path, prepared: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for end in ("sentences.part/valid.en", "wordpiece.json.part", "pieces.part/valid"):
        killed = run("mlm", **english(text, out), **killed_at("os.rename", f"{end}.part"))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    last = run("mlm", **english(text, out))
    assert last.returncode == 0, last.stderr
    assert "   train: done before" in last.stderr
    assert stages_of(out) == STAGES
    assert texts(out) == texts(prepared)
    assert not list(out.rglob("*.part"))


def test_several_languages_by_sentencepiece(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = {
        "TRAIN": f"{text}/train.en de:{text}/train.de",
        "VALID": f"de:{text}/valid.*\nen:{text}/valid.en",
        "SETTING": "multilingual",
        "VOCAB_SIZE": 138,
        "WORKERS": 2,
        "OUT": out,
    }
    result = run("mlm", **settings)
    assert result.returncode == 0, result.stderr
    # 240 and 90 sentences: their square roots are 15.5 and 9.5.
    for words in (
        "sample: 125 sentences of de, from 90",
        "sample: 205 sentences of en, from 240",
        "train: de, 1.63 times",
        "train: en, 1.00 times",
        "valid.de: 9 documents, 90 sentences",
    ):
        assert words in result.stderr, words
    assert {path.name for path in (out / "bin").iterdir()} == {
        *("dict.txt", "max-length", "preprocess.log", SENTENCEPIECE),
        *("train.bin", "train.idx", "valid.bin", "valid.idx"),
    }
    made = tokenizer.load(out / "bin")
    assert len(made.symbols()) + 5 == 138
    assert sum(len(line) == 1 for line in binarized(out / "bin", "valid")) == 15


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("TRAIN", "", "set TRAIN to the files of training text"),
        ("VALID", "", "set VALID to the files of validation text"),
        ("TRAIN", "nowhere.txt", "nowhere.txt: no such file; give FILE or LANGUAGE:FILE"),
        ("SETTING", "german", "SETTING 'german': choose english or multilingual"),
        ("SUBWORDS", "bpe", "SUBWORDS 'bpe': choose wordpiece or spm"),
        ("CASED", "yes", "CASED 'yes': give 1, or leave it empty"),
        ("VOCAB_SIZE", "many", "VOCAB_SIZE must be a positive number, got 'many'"),
        ("VOCAB_SIZE", "10", "wordpiece failed: WordPiece: 10 are too few"),
        ("VOCAB_SIZE", "9000", "different pieces and marks, not 9000"),
        ("ALPHA", "2", "ALPHA must be from 0 to 1, got '2'"),
        ("ALPHA", "half", "ALPHA must be from 0 to 1, got 'half'"),
        ("SPM_COVERAGE", "7", "SPM_COVERAGE must be from 0 to 1, got '7'"),
        ("MAX_LENGTH", "2", "--max-length 2: must be at least 3"),
    ],
)
def test_bad_settings_are_one_line(
    text: Path, tmp_path: Path, name: str, value: str, what: str
) -> None:
    out = tmp_path / "out"
    assert what in only_error(run("mlm", **{**english(text, out), name: value}))
    assert not (out / "bin").exists()


def test_a_vocabulary_can_be_mended_until_it_is_made(text: Path, tmp_path: Path) -> None:
    """What came before it does not depend on its size and is kept."""
    given = english(text, tmp_path / "out")
    assert "give a smaller size" in only_error(run("mlm", **{**given, "VOCAB_SIZE": 9000}))
    result = run("mlm", **given)
    assert result.returncode == 0, result.stderr
    assert "sentences: done before" in result.stderr
    said = only_error(run("mlm", **{**given, "VOCAB_SIZE": 131}))
    assert f"was made with 'VOCAB_SIZE={SIZE} CASED=', not 'VOCAB_SIZE=131 CASED='" in said


def test_text_that_is_not_utf8(text: Path, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("Größe\n".encode("latin-1"))
    given = english(text, tmp_path / "out") | {"VALID": tmp_path / "latin"}
    assert "latin, line 1: not valid UTF-8" in only_error(run("mlm", **given))
