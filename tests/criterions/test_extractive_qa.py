"""The criterion ``extractive_qa``: the loss by hand, masks, scores of whole validation sets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.logging import metrics

from diet_mt.criterions.extractive_qa import answerable

from ..tasks.toy_questions import (
    batches,
    learn,
    make_criterion,
    make_model,
    make_task,
    write_questions,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_questions(tmp_path_factory.mktemp("questions") / "data")


class Fixed(torch.nn.Module):
    """Says the same logits (B, S, 2) whatever it is asked."""

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
    loss, windows, output = make_criterion(task)(model, sample)
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
    model, criterion = make_model(task).double(), make_criterion(task)
    whole = sum(criterion(model, sample)[0].item() for sample in batches(task, "valid", 64))
    alone = sum(criterion(model, sample)[0].item() for sample in batches(task, "valid", 1))
    assert whole == pytest.approx(alone, rel=1e-5)


def validate(task: Any, model: Any, size: int, shares: int = 1) -> dict[str, float]:
    """A validation as fairseq's trainer does it, with ``shares`` processes."""
    criterion = make_criterion(task)
    model.eval()
    with metrics.aggregate(new_root=True) as whole, torch.no_grad():
        samples = batches(task, "valid", size)
        for first in range(0, len(samples), shares):
            outputs = [criterion(model, each)[2] for each in samples[first : first + shares]]
            with metrics.aggregate():
                task.reduce_metrics(outputs, criterion)
    return dict(whole.get_smoothed_values())


def test_a_model_learns_to_answer(folder: Path) -> None:
    task = make_task(folder)
    model = make_model(task)
    before = validate(task, model, 16)
    losses = learn(task, model)
    assert sum(losses[-5:]) < sum(losses[:5]) / 4
    after = validate(task, model, 16)
    assert before["f1"] < 50
    assert after["exact_match"] > 80
    assert after["f1"] >= after["exact_match"]
    # The same for batches of any size, and for several processes.
    for size, shares in ((1, 1), (5, 3), (64, 2)):
        other = validate(task, model, size, shares)
        assert (other["f1"], other["exact_match"]) == (after["f1"], after["exact_match"])
        assert other["loss"] == pytest.approx(after["loss"], abs=2e-3)


def test_scores_are_of_questions_and_not_of_windows(folder: Path) -> None:
    """Logits that are right in the window with the answer and less sure, and wrong, elsewhere."""
    task = make_task(folder)
    criterion = make_criterion(task)
    outputs = []
    for sample in batches(task, "valid", 8):
        logits = torch.zeros(*sample["net_input"]["src_tokens"].shape, 2)
        for row in range(len(logits)):
            for side, name in enumerate(("start", "end")):
                place = int(sample[name][row])
                logits[row, place or int(sample["context"][row]), side] = 9.0 if place else 1.0
        outputs.append(criterion(Fixed(logits).eval(), sample)[2])
    said = np.concatenate([output["answers"] for output in outputs])
    assert len(said) == task.sets["valid"].about.windows
    assert task.scores(said) == {"f1": 100, "exact_match": 100}
    # Without the windows that have it, no question is right.
    without = said[said[:, 3] < 9]
    assert 0 < len(without) < len(said)
    assert task.scores(without)["exact_match"] < 50


def test_answers_are_no_longer_than_allowed(folder: Path) -> None:
    task = make_task(folder, max_answer=1)
    sample = batches(task, "valid", 8)[0]
    criterion, logits = (
        make_criterion(task),
        torch.randn(8, sample["net_input"]["src_tokens"].size(1), 2),
    )
    for window, begin, end, *_ in criterion(Fixed(logits).eval(), sample)[2]["answers"]:
        extents = task.extents_of(int(window)).tolist()
        assert [begin, end] in extents


def test_outputs_are_gathered() -> None:
    from diet_mt.criterions.extractive_qa import ExtractiveQACriterion

    assert ExtractiveQACriterion.logging_outputs_can_be_summed() is False
