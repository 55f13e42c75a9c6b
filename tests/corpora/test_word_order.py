"""The demo corpus as files: reproducible, without overlap, and about word order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from diet_mt.corpora import word_order

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"train": 4000, "valid": 200, "test": 200}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("word_order")
    word_order.generate(out, SIZES, seed=3)
    return out


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_files_and_their_sizes(corpus: Path) -> None:
    sizes = {path.name: len(_lines(path)) for path in corpus.iterdir()}
    assert sizes == {
        f"{split}.{lang}": size
        for split, size in (("train", 4000), ("valid", 200), ("test", 200))
        for lang in ("en", "de")
    } | {"test.twins.de": 200}


def test_another_process_writes_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    """Nothing may hang on the order of a set, which differs from process to process."""
    program = (
        "from pathlib import Path; from diet_mt.corpora import word_order; "
        f"word_order.generate(Path({str(tmp_path)!r}), {SIZES}, 3)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert _bytes(tmp_path) == _bytes(corpus)


def test_another_seed_gives_other_sentences(corpus: Path, tmp_path: Path) -> None:
    word_order.generate(tmp_path, SIZES, seed=4)
    assert not set(_lines(tmp_path / "test.en")) & set(_lines(corpus / "test.en"))


def test_a_larger_training_set_keeps_the_test_set(corpus: Path, tmp_path: Path) -> None:
    word_order.generate(tmp_path, {**SIZES, "train": 10}, seed=3)
    for name in ("test.en", "test.de", "valid.en", "valid.de"):
        assert (tmp_path / name).read_bytes() == (corpus / name).read_bytes()
    assert _lines(corpus / "train.en")[:10] == _lines(tmp_path / "train.en")


@pytest.mark.parametrize("lang", ["en", "de"])
def test_no_sentence_comes_twice(corpus: Path, lang: str) -> None:
    """So none of the test is in training, and no English has two translations."""
    every = [
        line for split in ("train", "valid", "test") for line in _lines(corpus / f"{split}.{lang}")
    ]
    assert len(every) == len(set(every)) == 4400


@pytest.mark.parametrize(("lang", "forms"), [("en", 440), ("de", 650)])
def test_lengths_and_vocabulary(corpus: Path, lang: str, forms: int) -> None:
    sentences = [
        line.rstrip(".?").replace(",", "").split() for line in _lines(corpus / f"train.{lang}")
    ]
    lengths = [len(words) for words in sentences]
    assert min(lengths) >= 5
    assert max(lengths) <= 25
    assert 9 < sum(lengths) / len(lengths) < 14
    assert len({word.lower() for words in sentences for word in words}) >= forms


def test_the_same_words_in_another_order_mean_something_else(corpus: Path) -> None:
    bags: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for en, de in zip(_lines(corpus / "train.en"), _lines(corpus / "train.de"), strict=True):
        bags[tuple(sorted(en.lower().rstrip(".?").split()))].add(de)
    ambiguous = sum(len(translations) for translations in bags.values() if len(translations) > 1)
    assert ambiguous > 4000 * 0.05
