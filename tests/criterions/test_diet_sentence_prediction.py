"""The criterion measures a whole validation set, whatever its batches and processes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.logging import metrics as logged
from torch import Tensor, nn

from diet_mt.bert.metrics import measure
from diet_mt.criterions.diet_sentence_prediction import (
    DietSentencePredictionConfig,
    DietSentencePredictionCriterion,
)
from diet_mt.errors import UserError

CLASSES = 2
LOGITS = torch.tensor(
    [[2.0, 1.0], [0.0, 1.0], [0.5, 0.6], [3.0, 0.0], [0.0, 0.1], [1.0, 0.0], [0.2, 0.9]]
)
GOLD = torch.tensor([0, 1, 0, 0, 1, 1, 1])
SCORES = torch.tensor([[0.5], [4.0], [2.0], [1.0], [3.0], [3.5], [4.5]])
TRUE_SCORES = torch.tensor([[0.0], [5.0], [1.0], [2.0], [3.0], [2.5], [4.0]])


class Given(nn.Module):
    """A model that says what it is given, and has what fairseq's criterion asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.classification_heads = {"sentence_classification_head": None}
        self.args = Namespace(mha_reg_scale_factor=0.0, ffn_reg_scale_factor=0.0)

    def forward(self, logits: Tensor, **_: Any) -> tuple[Tensor, dict[str, Any]]:
        return logits, {}

    def get_targets(self, sample: dict[str, Any], _: Any) -> Tensor:
        found: Tensor = sample["target"]
        return found


def criterion(names: str = "", regression: bool = False) -> DietSentencePredictionCriterion:
    task: Any = SimpleNamespace(
        label_dictionary=None,
        cfg=SimpleNamespace(num_classes=1 if regression else CLASSES),
    )
    cfg = DietSentencePredictionConfig(metrics=names, regression_target=regression)
    return DietSentencePredictionCriterion(cfg, task)


def batches(logits: Tensor, gold: Tensor, sizes: Sequence[int]) -> Iterable[dict[str, Any]]:
    for some, true in zip(logits.split(list(sizes)), gold.split(list(sizes)), strict=True):
        yield {"net_input": {"logits": some}, "target": true, "ntokens": 3 * len(true)}


def validate(
    made: DietSentencePredictionCriterion,
    logits: Tensor,
    gold: Tensor,
    sizes: Sequence[int],
    processes: int = 1,
) -> dict[str, Any]:
    """As fairseq's trainer does: one step for as many batches as there are processes."""
    model = Given().eval()
    logs = [made(model, batch)[2] for batch in batches(logits, gold, sizes)]
    with logged.aggregate(new_root=True) as whole:
        for start in range(0, len(logs), processes):
            with logged.aggregate() as step:
                type(made).reduce_metrics(logs[start : start + processes])
                assert "matthews" not in step.get_smoothed_values()
        return dict(whole.get_smoothed_values())


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("sizes", [(7,), (3, 3, 1), (1, 5, 1), (1,) * 7])
def test_classes_over_uneven_batches(sizes: Sequence[int], processes: int) -> None:
    found = validate(criterion("matthews f1 accuracy"), LOGITS, GOLD, sizes, processes)
    predicted = LOGITS.argmax(1).numpy().astype(np.float32)
    for name in ("matthews", "f1", "accuracy"):
        assert found[name] == measure(name, predicted, GOLD.numpy().astype(np.float32))
    # Predicted 0 1 1 0 1 0 1, true 0 1 0 0 1 1 1: 3 tp, 1 fp, 1 fn, 2 tn.
    assert found["f1"] == 75.0
    assert found["matthews"] == pytest.approx(100 * 5 / 12, abs=1e-4)


@pytest.mark.parametrize("sizes", [(7,), (2, 4, 1)])
def test_scores_over_uneven_batches(sizes: Sequence[int]) -> None:
    found = validate(criterion("spearman pearson", regression=True), SCORES, TRUE_SCORES, sizes)
    for name in ("spearman", "pearson"):
        expected = measure(name, SCORES.view(-1).numpy(), TRUE_SCORES.view(-1).numpy())
        assert found[name] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_do_not_score(wrong: float) -> None:
    """The best of them would be class 0, which is right for three."""
    found = validate(criterion("accuracy"), torch.full_like(LOGITS, wrong), GOLD, (7,))
    assert found["accuracy"] == 0


def test_the_loss_is_fairseqs() -> None:
    loss, count, _ = criterion()(Given().train(), next(iter(batches(LOGITS, GOLD, (7,)))))
    expected = nn.functional.cross_entropy(LOGITS, GOLD, reduction="sum")
    torch.testing.assert_close(loss, expected)
    assert count == 7


def test_nothing_is_kept_while_training() -> None:
    _, _, found = criterion()(Given().train(), next(iter(batches(LOGITS, GOLD, (7,)))))
    assert "rows" not in found
    assert DietSentencePredictionCriterion.logging_outputs_can_be_summed() is False


def test_metrics_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="metric 'pearson': for classes"):
        criterion("pearson")
    with pytest.raises(UserError, match="metric 'accuracy': for scores"):
        criterion("accuracy", regression=True)
    assert criterion().metrics == ["accuracy"]
    assert criterion(regression=True).metrics == ["pearson"]
