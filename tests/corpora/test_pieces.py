"""SentencePiece models: what goes in comes out, and the same model on every machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diet_mt.corpora import pieces
from diet_mt.corpora.dictionary import write_dictionary
from diet_mt.corpora.settings import SPM_SAMPLE
from diet_mt.errors import UserError

from .wmt18 import sentences


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spm")
    _learn(folder, folder / "model")
    return folder / "model"


def _learn(folder: Path, out: Path, sample: int = SPM_SAMPLE) -> None:
    for lang in ("en", "de"):
        text = "".join(s[lang] + "\n" for s in sentences(200, seed=3))
        (folder / lang).write_text(text, encoding="utf-8")
    pieces.learn([folder / "en", folder / "de"], out, 120, sample=sample)


def test_text_comes_out_as_it_went_in(model: Path) -> None:
    lines = [
        "The old woman reads, because „Größe“ matters …",
        "½ ﬁne ² Ⅳ ~ @@ &amp; <s> <unk> x",  # no compatibility forms are folded
        "unbekannt: 漢字 и ещё",
        "a",
    ]
    split = pieces.split(lines, model)
    assert [pieces.join(line) for line in split] == lines
    assert all("  " not in line for line in split)


def test_white_space_of_any_kind_becomes_one_space(model: Path) -> None:
    (split,) = pieces.split(["a\u0085b \u2028 c\u00a0d"], model)
    assert pieces.join(split) == "a b c d"
    assert not any(c.isspace() and c != " " for c in split)  # fairseq would split there


@pytest.mark.parametrize("sample", [SPM_SAMPLE, 150])
def test_the_model_depends_on_the_text_alone(tmp_path: Path, sample: int) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        _learn(tmp_path / name, tmp_path / name / "model", sample)
    models = [(tmp_path / name / "model").read_bytes() for name in ("one", "two")]
    assert models[0] == models[1]
    assert str(tmp_path).encode() not in models[0]


def test_the_dictionary_is_the_models(model: Path, tmp_path: Path) -> None:
    from fairseq.data import Dictionary

    write_dictionary(pieces.symbols(model), tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert len(dictionary) % 8 == 0
    processor = pieces.load(model)
    assert dictionary[4] == processor.id_to_piece(3)  # <unk>, <s> and </s> are fairseq's own
    known = {processor.id_to_piece(n) for n in range(processor.get_piece_size())}
    assert known <= set(dictionary.symbols)
    assert all(s.startswith("madeupword") for s in set(dictionary.symbols) - known - {"<pad>"})
    (split,) = pieces.split(["The old woman"], model)
    assert dictionary.unk() not in dictionary.encode_line(split, add_if_not_exist=False)


@pytest.mark.parametrize(("size", "bound"), [(5, r"5 vs (\d+)"), (9999, r"a value <= (\d+)")])
def test_the_size_that_would_do_is_named(tmp_path: Path, size: int, bound: str) -> None:
    text = tmp_path / "text"
    text.write_text("".join(s["en"] + "\n" for s in sentences(200, seed=3)), encoding="utf-8")
    with pytest.raises(UserError, match=f"^{size} .*{bound}") as error:
        pieces.learn([text], tmp_path / "model", size)
    assert not (tmp_path / "model").exists()
    named = re.search(bound, str(error.value))
    assert named
    pieces.learn([text], tmp_path / "model", int(named[1]))
