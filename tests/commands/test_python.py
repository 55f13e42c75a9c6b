"""``DietTransformerModel.from_pretrained``: translations, scores, and the page about them."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from diet_mt.corpora.subwords import learn_bpe, to_text
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.models.hub import TranslationHub
from diet_mt.system.errors import UserError

from .runner import ROOT, run_python
from .workshop import Workshop, load, positional_scores, texts

SEARCH: dict[str, Any] = {"beam": 10, "lenpen": 0.6, "max_len_b": 30}


@pytest.fixture(scope="module")
def model(workshop: Workshop) -> TranslationHub:
    return DietTransformerModel.from_pretrained(
        str(workshop.trained("diet-rel")), "checkpoint_last.pt", str(workshop.bin)
    )


@pytest.fixture
def prepared(workshop: Workshop, tmp_path: Path) -> Path:
    """The folders of the page: data with a subword model that leaves words whole."""
    data, run = tmp_path / "data" / "multi30k.en-de" / "bin", tmp_path / "checkpoints/diet_rel.1"
    shutil.copytree(workshop.bin, data)
    text = [workshop.corpus / f"train.{side}" for side in ("src", "tgt")]
    learn_bpe(text, data / "bpe.codes", 300)
    run.mkdir(parents=True)
    shutil.copy(workshop.checkpoint("diet-rel"), run / "checkpoint_best.pt")
    return tmp_path


def test_the_order_is_that_of_the_input(workshop: Workshop, model: TranslationHub) -> None:
    lines = workshop.lines()
    expected = texts(workshop.decoded("diet-rel"))
    assert model.translate(lines, **SEARCH) == expected
    assert model.translate(lines[4], **SEARCH) == expected[4]
    some = [lines[2], "", lines[0], " \t"]
    several: Any = iter(lines[4:6])
    assert model.translate(several, **SEARCH) == expected[4:6]
    assert model.translate(some, max_tokens=20, **SEARCH) == [expected[2], "", expected[0], ""]
    assert model.translate([], **SEARCH) == model.translate([]) == []
    assert model.translate([""]) == [""]
    assert model.translate(" ") == ""


def test_scores_are_those_of_a_full_pass(workshop: Workshop, model: TranslationHub) -> None:
    models, task = load(workshop.checkpoint("diet-rel"))
    sources, targets = workshop.lines(), [*workshop.lines("test.tgt")[:-2], "TWO unknown", ""]
    scores = model.score(sources, targets)
    for source, target, one in zip(sources, targets, scores, strict=True):
        expected = positional_scores(models, task, source, target)
        assert one.tolist() == pytest.approx([x * math.log(2) for x in expected], abs=1e-5)
        assert len(model.encode_target(target)) == len(one)
    small = model.score(sources, targets, max_tokens=20)
    for one, other in zip(scores, small, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
    alone = model.score(sources[3], targets[3])
    torch.testing.assert_close(alone, scores[3], rtol=0, atol=1e-5)
    assert model.score([], []) == []
    assert model.score("", targets[0]).shape == scores[0].shape


def test_an_ensemble_in_half_precision(workshop: Workshop) -> None:
    folder = workshop.trained("diet-rel")
    twice = "checkpoint_last.pt:checkpoint_last.pt"
    pair = DietTransformerModel.from_pretrained(str(folder), twice, str(workshop.bin))
    sources, targets = workshop.lines()[:5], workshop.lines("test.tgt")[:5]
    expected, words = pair.score(sources, targets), pair.translate(sources, **SEARCH)
    for dtype, off in ((torch.bfloat16, 0.3), (torch.float16, 0.05)):
        narrow = pair.to(dtype)
        for one, other in zip(narrow.score(sources, targets), expected, strict=True):
            assert one.dtype == torch.float32
            torch.testing.assert_close(one, other, rtol=0, atol=off)
        same = [a == b for a, b in zip(narrow.translate(sources, **SEARCH), words, strict=True)]
        assert sum(same) >= 4


def test_text_is_split_as_in_preparation(
    workshop: Workshop, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    data = "data/multi30k.en-de/bin"
    plain = DietTransformerModel.from_pretrained("checkpoints/diet_rel.1", data_name_or_path=data)
    file = "checkpoints/diet_rel.1/checkpoint_best.pt"
    split = DietTransformerModel.from_pretrained(file, data_name_or_path=data, bpe="")
    lines, targets = workshop.lines()[:8], workshop.lines("test.tgt")[:8]
    expected = split.translate(lines, **SEARCH)
    spaced = [f"  {line.replace(' ', '   ')} " for line in lines]
    assert plain.translate(spaced, **SEARCH) == [to_text(text, "tgt", "bpe") for text in expected]
    for one, other in zip(plain.score(spaced, targets), split.score(lines, targets), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_what_is_no_option_or_no_pair(model: TranslationHub) -> None:
    with pytest.raises(TypeError, match="beem"):
        model.translate(["bal"], beem=3)
    with pytest.raises(UserError, match="--beam 0"):
        model.translate(["bal"], beam=0)
    with pytest.raises(ValueError, match="sources and targets"):
        model.score(["bal", "der"], ["ONE"])
    with pytest.raises(ValueError, match="sources and targets"):
        model.score("bal", ["ONE"])  # type: ignore[call-overload]
    with pytest.raises(Exception, match="max_positions"):
        model.translate(["bal"] * 2 + ["bal " * 90])


def test_sentences_beyond_the_tables(workshop: Workshop) -> None:
    path, data = str(workshop.checkpoint("diet-rel")), str(workshop.bin)
    model = DietTransformerModel.from_pretrained(path, None, data, beyond_table="clip")
    assert model.translate(["bal " * 90], max_len_b=9)[0]
    assert model.score("bal " * 90, "ONE " * 80).shape == (81,)


def test_the_page(prepared: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(programs) == 3
    printed = run_python("".join(programs), cwd=prepared, PYTHONPATH=ROOT)
    assert printed.count("sum: -") == 2
