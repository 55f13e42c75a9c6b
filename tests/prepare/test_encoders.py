"""Tasks and text of encoders from their official files to binaries, on generated rows."""

from __future__ import annotations

import gzip
from itertools import accumulate, chain
from pathlib import Path

import pytest

from diet_mt.bert import tokenizer
from diet_mt.bert.tokenizer import WORDPIECE
from diet_mt.bert.windows import read_about, read_features

from ..bert.made import SIZES, article, coloured, entry, write_glue, write_squad, write_xnli
from ..corpora.wmt18 import sentences
from .conftest import Once
from .running import killed, lines_of, only_error, prepare, sentences_in, stages_of, state, texts


@pytest.fixture(scope="module")
def official(once: Once) -> Path:
    """Folders glue, xnli, xquad, mlqa and tydi; train.json and valid.json."""

    def fill(folder: Path) -> None:
        write_glue(folder / "glue")
        write_xnli(folder / "xnli")
        for name in ("xquad", "mlqa", "tydi"):
            (folder / name).mkdir()
        coloured(folder / "train.json", 20, seed=1)
        coloured(folder / "valid.json", 6, seed=2)
        coloured(folder / "xquad" / "xquad.en.json", 5, seed=3)
        chinese = "中国的首都是北京。"
        one = entry("zh1", "首都?", chinese, "北京")
        write_squad(folder / "xquad" / "xquad.zh.json", article(chinese, one))
        coloured(folder / "mlqa" / "test-context-de-question-de.json", 4, seed=4)
        coloured(folder / "tydi" / "finnish.dev.json", 3, seed=5)

    return once("official", fill)


def test_pairs_with_two_test_sets(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    out = tmp_path / "with a space"
    given = ("--from", official / "glue", "--vocab", vocabulary, "--out", out, "--workers", 1)
    words = ("glue", "MNLI", *given, "--max-length", 30)
    printed = prepare(*words).ok()
    stages = ["raw", "pieces", "input0", "input1", "label", WORDPIECE]
    assert stages_of(out) == stages
    for split, rows in (("train", "train"), ("valid1", "dev"), ("test1", "test")):
        assert f"{split}, input1: {SIZES[rows]}, expected {SIZES[rows]}" in printed
    assert sentences_in(out / "label" / "valid1") == lines_of(out / "raw" / "valid1.label")
    assert (out / "label" / "dict.txt").read_text() == (out / "raw" / "labels.txt").read_text()
    assert sentences_in(out / "input0" / "test") == lines_of(out / "pieces" / "test.input0")
    assert (out / WORDPIECE).read_bytes() == (vocabulary / WORDPIECE).read_bytes()
    assert not (out / "label" / "test.idx").exists()
    assert "--max-length 30, not --max-length 128" in only_error(prepare("glue", "MNLI", *given))


def test_scores_and_languages(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    given = ("--from", official / "glue", "--vocab", vocabulary, "--workers", 1)
    printed = prepare("glue", "STS-B", *given, "--out", tmp_path / "STS-B").ok()
    assert lines_of(tmp_path / "STS-B" / "label" / "valid.label")[:2] == ["4.75", "0.5"]
    assert f"valid, label: {SIZES['dev']}, expected {SIZES['dev']}" in printed
    plan = prepare("glue", "all", *given, "--out", tmp_path / "glue", "--dry-run")
    folders = [line for line in plan.out.split("\n") if line.startswith(str(tmp_path))]
    assert len(folders) == 9
    assert folders[0].startswith(f"{tmp_path}/glue/CoLA: CoLA MAX_LENGTH=128 BAD_ROWS=refuse ")
    out = tmp_path / "XNLI"
    given = ("--from", official / "xnli", "--mnli", official / "glue", "--vocab", vocabulary)
    prepare("xnli", *given, "--out", out, "--workers", 1).ok()
    names = {path.stem for path in (out / "label").glob("*.idx")}
    assert names == {"train", "valid_en", "valid_sw", "test_en", "test_sw"}
    assert sentences_in(out / "label" / "test_sw")[:2] == ["contradiction", "neutral"]


def test_questions(official: Path, vocabulary: Path, tmp_path: Path) -> None:
    out = tmp_path / "with a space"
    files = ("--train", official / "train.json", "--valid", official / "valid.json")
    sizes = ("--max-tokens", 48, "--stride", 16, "--max-question", 20)
    words = ("qa", *files, "--vocab", vocabulary, "--out", out, *sizes)
    for end in ("dict.txt.part.part", "train.part/windows.npy.part", "valid.part/about.json.part"):
        killed("os.rename", end, *words)
    assert (out / "valid.part" / "squad.json").exists()
    printed = prepare(*words, "--xquad", official / "xquad").ok()
    stages = ["dict.txt", "wordpiece.json", "train", "valid", "test_xquad_en", "test_xquad_zh"]
    assert stages_of(out) == stages
    assert not list(out.rglob("*.part"))
    assert "== train: done before" in printed
    assert "valid.json: 6 questions" in printed
    about = read_about(out / "train")
    assert (about.questions, about.language, about.scoring) == (20, "en", "squad")
    assert (about.max_tokens, about.stride, about.max_question) == (48, 16, 20)
    assert about.windows == len(read_features(out / "train")) > 20
    assert read_about(out / "test_xquad_zh").language == "zh"
    for name in ("dict.txt", "wordpiece.json"):
        assert (out / name).read_bytes() == (vocabulary / name).read_bytes()

    # Test sets are added later; other settings are refused.
    prepare(*words, "--mlqa", official / "mlqa", "--tydiqa", official / "tydi").ok()
    assert stages_of(out) == [*stages, "test_mlqa_de", "test_tydiqa_fi"]
    assert read_about(out / "test_mlqa_de").scoring == "mlqa"
    assert "with --stride 16, not --stride 10" in only_error(prepare(*words, "--stride", 10))

    # Another folder of the same names is not taken for this one.
    (tmp_path / "xquad").mkdir()
    coloured(tmp_path / "xquad" / "xquad.en.json", 5, seed=9)
    message = only_error(prepare(*words, "--xquad", tmp_path / "xquad"))
    assert "test_xquad_en: made from other content than" in message


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


@pytest.fixture(scope="session")
def corpus(text: Path, once: Once) -> Path:
    def fill(folder: Path) -> None:
        printed = prepare(*english(text, folder / "out")).ok()
        assert "train.en: 21 documents, 240 sentences" in printed
        assert "were cut" in printed

    return once("mlm", fill) / "out"


def test_a_corpus_of_a_masked_language_model(corpus: Path) -> None:
    """Also as pretraining packs it by default: no block crosses the end of a document."""
    from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

    made, bin_folder = tokenizer.load(corpus / "bin"), corpus / "bin"
    assert stages_of(corpus) == STAGES
    assert (bin_folder / "max-length").read_text(encoding="utf-8") == "20\n"
    symbols = [line.split(" ")[0] for line in lines_of(bin_folder / "dict.txt")]
    known = made.symbols()
    assert symbols[: len(known)] == known
    assert len(known) + 5 == SIZE, "with fairseq's five special symbols"
    lines = [line.split() for line in sentences_in(bin_folder / "train")]
    assert max(map(len, lines)) == 18, "20 with <s> and </s>"
    assert lines.count([]) == 21, "the ends of documents"
    text = (corpus / "sentences" / "train.en").read_text(encoding="utf-8")
    assert made.text(list(chain(*lines))) == made.text(made.pieces(text)), "all, in its order"

    cfg = MaskedLMConfig(
        data=str(bin_folder), tokens_per_sample=20, sample_break_mode="complete_doc"
    )
    task = MaskedLMTask.setup_task(cfg)
    data = task._load_dataset_split("train", 1, False)
    blocks = [data[number] for number in range(len(data))]
    assert max(map(len, blocks)) <= 20
    packed = [task.source_dictionary.string(block).split() for block in blocks]
    assert list(chain(*packed)) == list(chain(*lines))
    before = list(accumulate(map(len, lines), initial=0))
    ends = {at for at, line in zip(before, lines, strict=False) if not line}
    assert ends <= set(accumulate(map(len, packed)))


def test_a_second_run_does_nothing_and_an_interrupted_one_continues(
    text: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(corpus)
    assert prepare(*english(text, corpus)).ok().count("done before") == len(STAGES)
    for option, value in (("--vocab-size", "131"), ("--language", "de_DE:en")):
        assert f"not {option} {value}" in only_error(prepare(*english(text, corpus, option, value)))
    assert state(corpus) == before
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
    printed = prepare("mlm", *files, *own, "--out", out).ok()
    # 240 and 90 sentences: their square roots are 15.5 and 9.5.
    for words in (
        "sample: 125 sentences of de, from 90",
        "sample: 205 sentences of en, from 240",
        "train: de, 1.63 times",
        "train: en, 1.00 times",
        "valid.de: 3 documents, 30 sentences",
    ):
        assert words in printed, words
    assert len(tokenizer.load(out / "bin").symbols()) + 5 == 138
