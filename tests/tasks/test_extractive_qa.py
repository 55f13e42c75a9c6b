"""The task and the criterion ``extractive_qa``: batches, the loss by hand, scores of whole sets."""

from __future__ import annotations

import json
import math
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.logging import metrics

from diet_mt.bert.qa import prepare
from diet_mt.bert.windows import BEGIN, END, WindowSizes
from diet_mt.criterions.extractive_qa import ExtractiveQACriterion, answerable
from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.system.errors import UserError
from diet_mt.tasks.extractive_qa import ExtractiveQAConfig, ExtractiveQATask

from ..bert.made import coloured, write_vocabulary

# Several windows for a question.
SIZES = WindowSizes(max_tokens=48, stride=16, max_question=20)
MODEL: dict[str, Any] = {
    "encoder_layers": 1,
    "encoder_embed_dim": 32,
    "encoder_ffn_embed_dim": 48,
    "encoder_attention_heads": 2,
    "max_source_positions": 50,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "position_encoding": "diet-rel",
    "segment_encoding": "per-head",
}


def make_task(folder: Path, **options: Any) -> ExtractiveQATask:
    given = {"data": str(folder), "max_positions": 50, "seed": 1, **options}
    return ExtractiveQATask.setup_task(ExtractiveQAConfig(**given))


def make_model(task: ExtractiveQATask, **options: Any) -> DietRobertaModel:
    torch.manual_seed(1)
    model = DietRobertaModel.build_model(Namespace(**{**MODEL, **options}), task)
    model.register_span_head()
    return model


def batches(task: ExtractiveQATask, split: str, size: int) -> list[Any]:
    dataset = task.load_dataset(split)
    iterator = task.get_batch_iterator(dataset, max_sentences=size, seed=1)
    return list(iterator.next_epoch_itr(shuffle=False))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared questions: train, and 24 of valid."""
    folder = write_vocabulary(tmp_path_factory.mktemp("questions") / "data")
    for seed, (split, count) in enumerate((("train", 8), ("valid", 24)), start=1):
        file = coloured(folder / f"{split}.json", count, seed)
        prepare(file, folder, folder / split, SIZES, language="en")
    return folder


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


def answers_of(task: object, rights: list[bool], split: str = "valid") -> np.ndarray:
    """Answers of windows to the first ``len(rights)`` questions, right or wrong."""
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
    assert task.scores(answers_of(task, [True] * 24)) == {"f1": 100, "exact_match": 100}
    half = task.scores(answers_of(task, [True, True, False, True, False, False] * 4))
    assert half == {"f1": 50, "exact_match": 50}
    # What no window was seen of counts as wrong.
    assert task.scores(answers_of(task, [True] * 8))["f1"] == pytest.approx(100 / 3)
    both = np.concatenate([answers_of(task, [True]), answers_of(task, [True], "train")])
    with pytest.raises(UserError, match="--combine-valid-subsets"):
        task.scores(both)


def test_where_questions_can_be_impossible(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "valid" / "squad.json").read_text())
    first = content["data"][0]["paragraphs"][0]["qas"][0]
    first.update(answers=[], is_impossible=True)
    copied = tmp_path / "data"
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
    with pytest.raises(UserError, match="--max-positions 40"):
        make_task(folder, max_positions=40).load_dataset("valid")
    (tmp_path / "dict.txt").write_text("a 1\n")
    (tmp_path / "valid").symlink_to(folder / "valid")
    with pytest.raises(UserError, match=r"dict\.txt"):
        make_task(tmp_path).load_dataset("valid")


class Fixed(torch.nn.Module):
    """Returns the same logits (B, S, 2) for all inputs."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def forward(self, use_span_head: bool = False, **net_input: Any) -> tuple[torch.Tensor, dict]:
        assert use_span_head
        return self.logits, {}


def test_where_an_answer_may_stand() -> None:
    # <s> q </s> </s> c c </s>, and one token and one of padding less of the context.
    allowed = answerable(torch.zeros(2, 7), torch.tensor([7, 6]), torch.tensor([4, 4]))
    expected = [[1, 0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 1, 0, 0]]
    assert allowed.long().tolist() == expected


def test_the_loss_is_the_mean_of_two_cross_entropies_where_answers_may_stand(
    folder: Path,
) -> None:
    task = make_task(folder)
    sample = batches(task, "valid", 9)[0]
    shape = (*sample["net_input"]["src_tokens"].shape, 2)
    logits = torch.randn(shape)
    model = Fixed(logits).train()
    loss, windows, output = ExtractiveQACriterion(task)(model, sample)
    expected = 0.0
    for row in range(len(logits)):
        length = int(sample["net_input"]["src_lengths"][row])
        places = [0, *range(int(sample["context"][row]), length - 1)]
        for side, name in enumerate(("start", "end")):
            total = sum(math.exp(logits[row, place, side]) for place in places)
            gold = logits[row, sample[name][row], side]
            expected += (math.log(total) - gold.item()) / 2
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert windows == output["sample_size"] == output["nsentences"] == len(logits)
    assert "answers" not in output
    loss.backward()
    # Nothing is learnt from the question, the padding and the marks.
    given = sample["net_input"]
    allowed = answerable(given["src_tokens"], given["src_lengths"], sample["context"])
    gradient = model.logits.grad.abs().sum(-1)
    assert (gradient[~allowed] == 0).all()
    assert (gradient[allowed] > 0).all()


def test_padding_changes_nothing(folder: Path) -> None:
    task = make_task(folder)
    model, criterion = make_model(task).double(), ExtractiveQACriterion(task)
    whole = sum(criterion(model, sample)[0].item() for sample in batches(task, "valid", 64))
    alone = sum(criterion(model, sample)[0].item() for sample in batches(task, "valid", 1))
    assert whole == pytest.approx(alone, rel=1e-5)


def validate(task: Any, model: Any, size: int, shares: int = 1) -> dict[str, float]:
    """A validation as fairseq's trainer does it, with ``shares`` processes."""
    criterion = ExtractiveQACriterion(task)
    model.eval()
    with metrics.aggregate(new_root=True) as whole, torch.no_grad():
        samples = batches(task, "valid", size)
        for first in range(0, len(samples), shares):
            outputs = [criterion(model, each)[2] for each in samples[first : first + shares]]
            with metrics.aggregate():
                task.reduce_metrics(outputs, criterion)
    return dict(whole.get_smoothed_values())


def test_a_validation_is_the_same_for_batches_of_any_size_and_several_processes(
    folder: Path,
) -> None:
    task = make_task(folder)
    model = make_model(task)
    expected = validate(task, model, 16)
    assert 0 < expected["f1"] < 100
    for size, shares in ((1, 1), (5, 3), (64, 2)):
        actual = validate(task, model, size, shares)
        assert (actual["f1"], actual["exact_match"]) == (expected["f1"], expected["exact_match"])
        assert actual["loss"] == pytest.approx(expected["loss"], abs=2e-3)


def test_answers_are_no_longer_than_allowed(folder: Path) -> None:
    task = make_task(folder, max_answer=1)
    sample = batches(task, "valid", 8)[0]
    model = Fixed(torch.randn(8, sample["net_input"]["src_tokens"].size(1), 2)).eval()
    for window, begin, end, *_ in ExtractiveQACriterion(task)(model, sample)[2]["answers"]:
        assert [begin, end] in task.extents_of(int(window)).tolist()
