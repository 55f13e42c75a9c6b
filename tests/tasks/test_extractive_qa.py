"""The task ``extractive_qa``: what batches hold, and scores over whole sets."""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

from diet_mt.bert.squad import read_squad
from diet_mt.bert.windows import BEGIN, END
from diet_mt.errors import UserError

from .toy_questions import SIZES, batches, make_model, make_task, write_questions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_questions(tmp_path_factory.mktemp("questions") / "data", train=8, valid=6)


def test_batches(folder: Path) -> None:
    task = make_task(folder)
    seen = []
    for sample in batches(task, "valid", 7):
        given = sample["net_input"]
        tokens, lengths = given["src_tokens"], given["src_lengths"]
        assert given.keys() == {"src_tokens", "src_lengths", "segment_ids"}
        assert given["segment_ids"].shape == tokens.shape
        assert tokens.size(1) == lengths.max()
        for row, number in enumerate(sample["window"].tolist()):
            length, context = int(lengths[row]), int(sample["context"][row])
            own = tokens[row, :length].tolist()
            assert (own[0], own[-1], own[context - 2 : context]) == (BEGIN, END, [END, END])
            assert (tokens[row, length:] == task.dictionary.pad()).all()
            segments = given["segment_ids"][row].tolist()
            # The second </s> belongs to the context, as in sentence pairs; padding is of segment 0.
            expected = [0] * (context - 1) + [1] * (length - context + 1)
            assert segments == expected + [0] * (tokens.size(1) - length)
            extents = task.extents_of(number)
            assert len(extents) == length
            start, end = int(sample["start"][row]), int(sample["end"][row])
            group = task.set_of(number)
            question = group.questions[group.question_of(number - group.first)]
            if end:
                text = question.context[extents[start][0] : extents[end][1]]
                assert text == question.answers[0].text
            seen.append(number)
    assert sorted(seen) == list(range(task.sets["valid"].about.windows))


def test_the_order_of_windows(folder: Path) -> None:
    def order(**options: object) -> list[int]:
        task = make_task(folder, **options)
        return [n for sample in batches(task, "valid", 5) for n in sample["window"].tolist()]

    assert order(no_shuffle=True) == sorted(order())
    assert order() == order() != order(no_shuffle=True)
    assert order(seed=2) != order()


def test_windows_of_all_splits_have_numbers_of_their_own(folder: Path) -> None:
    task = make_task(folder)
    train, valid = task.load_dataset("train"), task.load_dataset("valid")
    task.load_dataset("train")  # fairseq loads it again for each epoch
    assert task.sets["train"].first == 0
    assert task.sets["valid"].first == len(train)
    assert task.set_of(len(train)) is task.sets["valid"]
    assert task.set_of(len(train) - 1) is task.sets["train"]
    with pytest.raises(IndexError):
        task.set_of(len(train) + len(valid))


def said(task: object, rights: list[bool], split: str = "valid") -> np.ndarray:
    """What windows say where the first ``len(rights)`` questions are right or answered wrongly."""
    group = task.sets[split]  # type: ignore[attr-defined]
    rows = []
    for number in range(len(group.features)):
        question = group.question_of(number)
        if question < len(rights):
            gold = group.questions[question].answers[0]
            place = (gold.start, gold.end) if rights[question] else (0, 0)
            # The window that holds the answer is surest.
            sure = 5.0 if group.features.column("end")[number] else 1.0
            wrong = (0, 1) if sure == 1.0 else place
            rows.append((group.first + number, *wrong, sure, sure, -9.0))
    return np.asarray(rows, dtype=np.float64)


def test_scores_are_those_of_whole_questions_over_all_of_the_set(folder: Path) -> None:
    task = make_task(folder)
    task.load_dataset("train")
    task.load_dataset("valid")
    assert task.scores(said(task, [True] * 6)) == {"f1": 100, "exact_match": 100}
    half = task.scores(said(task, [True, True, False, True, False, False]))
    assert half == {"f1": 50, "exact_match": 50}
    # What no window was seen of counts as wrong.
    found = task.scores(said(task, [True, True]))
    assert found["f1"] == pytest.approx(100 / 3)
    both = np.concatenate([said(task, [True]), said(task, [True], "train")])
    with pytest.raises(UserError, match="--combine-valid-subsets"):
        task.scores(both)


def test_where_questions_can_be_impossible(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "valid" / "squad.json").read_text())
    first = content["data"][0]["paragraphs"][0]["qas"][0]
    first.update(answers=[], is_impossible=True)
    copied = tmp_path / "data"
    import shutil

    shutil.copytree(folder, copied)
    (copied / "valid" / "squad.json").write_text(json.dumps(content))
    task = make_task(copied)
    task.load_dataset("valid")
    group = task.sets["valid"]
    assert group.is_version_2
    windows = [n for n in range(len(group.features)) if group.question_of(n) == 0]

    def one(nothing: list[float]) -> float:
        rows = [(n, 0, 3, 1.0, 1.0, none) for n, none in zip(windows, nothing, strict=True)]
        return task.scores(np.asarray(rows, dtype=np.float64))["NoAns_f1"]

    # Of all windows, the one that is least sure that there is no answer decides.
    assert one([2.5] * len(windows)) == 100
    assert one([2.5] * (len(windows) - 1) + [1.5]) == 0
    assert one([1.5] * len(windows)) == 0


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"dict\.txt: no such file"):
        make_task(tmp_path)
    with pytest.raises(UserError, match="--max-answer 0"):
        make_task(folder, max_answer=0)
    task = make_task(folder)
    with pytest.raises(UserError, match=r"test/about\.json: cannot be read"):
        task.load_dataset("test")
    with pytest.raises(UserError, match=r"windows of 48 tokens, but --max-positions 40"):
        make_task(folder, max_positions=40).load_dataset("valid")
    small = tmp_path / "small"
    small.mkdir()
    (small / "dict.txt").write_text("a 1\n")
    (small / "valid").symlink_to(folder / "valid")
    with pytest.raises(UserError, match=r"tokens that are not in .*dict\.txt"):
        make_task(small).load_dataset("valid")


def test_the_model_gets_a_head(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(folder)
    model = make_model(task)
    model.span_head = None
    monkeypatch.setattr("fairseq.models.build_model", lambda *given: model)
    options = Namespace(max_positions=9)
    assert task.build_model(options).span_head is not None
    assert options.max_positions == 50
    monkeypatch.setattr("fairseq.models.build_model", lambda *given: torch.nn.Linear(1, 1))
    with pytest.raises(UserError, match="choose an architecture of diet_roberta"):
        task.build_model(Namespace())


def test_the_questions_are_those_of_the_file(folder: Path) -> None:
    task = make_task(folder)
    task.load_dataset("valid")
    assert task.sets["valid"].questions == read_squad(folder / "valid.json")
    assert dataclasses.asdict(task.sets["valid"].about)["max_tokens"] == SIZES.max_tokens
