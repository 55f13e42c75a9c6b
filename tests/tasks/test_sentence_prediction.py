"""Sentence prediction: segments from the data, and metrics of whole validation sets."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, indexed_dataset
from fairseq.logging import metrics as logged
from torch import Tensor, nn

from diet_mt.bert.metrics import measure
from diet_mt.criterions.diet_sentence_prediction import (
    DietSentencePredictionConfig,
    DietSentencePredictionCriterion,
)
from diet_mt.system.errors import UserError
from diet_mt.tasks.diet_sentence_prediction import DietSentencePredictionTask

from ..toy import BOS, EOS, PAD, UNK, dictionary

Sentences = Sequence[Sequence[int]]

# Marks inside sentences, too: fairseq's end and beginning, and what is masked.
FIRST = [[5, 6, 7], [EOS, 8], [9], [10, EOS, EOS, 11], [BOS, 12, UNK], []]
SECOND = [[21, 22], [23], [24, EOS, 25, 26, 27], [EOS], [28, 29, BOS], [30]]
LABELS = [0, 1, 1, 0, 1, 0]


def write(path: Path, sentences: Sentences, symbols: Dictionary) -> None:
    """What fairseq-preprocess makes of sentences, an end behind each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    symbols.save(str(path.parent / "dict.txt"))
    builder = indexed_dataset.make_builder(f"{path}.bin", "mmap", vocab_size=len(symbols))
    for sentence in sentences:
        builder.add_item(torch.tensor([*sentence, EOS]))
    builder.finalize(f"{path}.idx")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("pairs")
    write(folder / "input0" / "train", FIRST, dictionary())
    write(folder / "input1" / "train", SECOND, dictionary())
    symbols = Dictionary()
    for name in ("no", "yes"):
        symbols.add_symbol(name)
    write(folder / "label" / "train", [[4 + label] for label in LABELS], symbols)
    return folder


def loaded(folder: Path, **changes: Any) -> Any:
    """The training set of the task; the marks are those of the data recipes."""
    given: dict[str, Any] = {
        "data": str(folder), "num_classes": 2, "init_token": BOS, "separator_token": EOS,
        "no_shuffle": True, "shorten_method": "none", "shorten_data_split_list": "",
        "add_prev_output_tokens": False, "max_positions": 512, "regression_target": False,
        "classification_head_name": "head", "seed": 1, "d2v2_multi": False, **changes,
    }  # fmt: skip
    task = DietSentencePredictionTask.setup_task(SimpleNamespace(**given))
    return task.load_dataset("train")


def examples(dataset: Any) -> Iterator[tuple[list[int], list[int], int]]:
    """Tokens, segments and label of each."""
    for index in range(len(dataset)):
        item = dataset[index]
        tokens, segments = item["net_input.src_tokens"], item["net_input.segment_ids"]
        yield tokens.tolist(), segments.tolist(), int(item["target"])


def by_hand(
    number: int, begin: Sequence[int] = (BOS,), between: Sequence[int] = (EOS,)
) -> tuple[list[int], list[int]]:
    one = [*begin, *FIRST[number], EOS]
    other = [*between, *SECOND[number], EOS]
    return [*one, *other], [0] * len(one) + [1] * len(other)


@pytest.mark.parametrize("longest", [1, 4, 5, 6, 9])
def test_segments_are_exact_under_truncation(pairs: Path, longest: int) -> None:
    """The end is cut off, of the second sentence or of both."""
    dataset = loaded(pairs, shorten_method="truncate", max_positions=longest)
    for number, (tokens, segments, _) in enumerate(examples(dataset)):
        expected_tokens, expected_segments = by_hand(number)
        assert tokens == expected_tokens[:longest]
        assert segments == expected_segments[:longest]


@pytest.mark.parametrize("init_token", [None, BOS, 9])
@pytest.mark.parametrize("separator_token", [None, EOS, 7])
def test_every_token_has_the_segment_of_its_sentence(
    pairs: Path, init_token: int | None, separator_token: int | None
) -> None:
    """Sentences with separators inside, and an empty one."""
    dataset = loaded(pairs, init_token=init_token, separator_token=separator_token)
    marks = [() if mark is None else (mark,) for mark in (init_token, separator_token)]
    for number, actual in enumerate(examples(dataset)):
        assert actual == (*by_hand(number, *marks), LABELS[number])


def test_single_sentences_are_of_one_segment(pairs: Path, tmp_path: Path) -> None:
    for part in ("input0", "label"):
        (tmp_path / part).symlink_to(pairs / part)
    for number, (tokens, segments, _) in enumerate(examples(loaded(tmp_path))):
        assert tokens == [BOS, *FIRST[number], EOS]
        assert segments == [0] * len(tokens)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_batches_are_padded_and_shuffled_as_their_tokens(pairs: Path, seed: int | None) -> None:
    dataset = loaded(pairs, no_shuffle=seed is None, seed=seed or 1)
    order = dataset.ordered_indices().tolist() if seed else list(range(len(FIRST)))
    assert sorted(order) == list(range(len(FIRST)))
    assert (order == sorted(order)) is (seed is None)
    given = dataset.collater([dataset[index] for index in order])["net_input"]
    assert given["segment_ids"].shape == given["src_tokens"].shape
    assert given["segment_ids"].dtype == torch.int64
    for place, index in enumerate(order):
        tokens, segments = by_hand(index)
        rest = len(given["src_tokens"][place]) - len(tokens)
        assert given["src_lengths"][place] == len(tokens)
        assert given["src_tokens"][place].tolist() == tokens + [PAD] * rest
        assert given["segment_ids"][place].tolist() == segments + [0] * rest


def test_random_crops_are_refused_where_they_are_made(pairs: Path) -> None:
    with pytest.raises(UserError, match="--shorten-method random_crop"):
        loaded(pairs, shorten_method="random_crop", shorten_data_split_list="valid,train")
    dataset = loaded(pairs, shorten_method="random_crop", shorten_data_split_list="train1,valid")
    assert len(list(examples(dataset))) == len(FIRST)


def test_what_the_model_cannot_read_is_not_left_out(pairs: Path) -> None:
    longest = max(len(by_hand(number)[0]) for number in range(len(FIRST)))
    assert len(list(examples(loaded(pairs, max_positions=longest)))) == len(FIRST)
    with pytest.raises(UserError, match=f"--max-positions {longest - 1}"):
        loaded(pairs, max_positions=longest - 1)


# The criterion

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
        values: Tensor = sample["target"]
        return values


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


@pytest.mark.parametrize(("sizes", "processes"), [((7,), 1), ((3, 3, 1), 2), ((1,) * 7, 2)])
def test_metrics_over_uneven_batches(sizes: Sequence[int], processes: int) -> None:
    values = validate(criterion("matthews f1 accuracy"), LOGITS, GOLD, sizes, processes)
    predicted = LOGITS.argmax(1).numpy().astype(np.float32)
    for name in ("matthews", "f1", "accuracy"):
        assert values[name] == measure(name, predicted, GOLD.numpy().astype(np.float32))
    # Predicted 0 1 1 0 1 0 1, true 0 1 0 0 1 1 1: 3 tp, 1 fp, 1 fn, 2 tn.
    assert values["f1"] == 75.0
    scores = criterion("spearman pearson", regression=True)
    values = validate(scores, SCORES, TRUE_SCORES, sizes, processes)
    for name in ("spearman", "pearson"):
        expected = measure(name, SCORES.view(-1).numpy(), TRUE_SCORES.view(-1).numpy())
        assert values[name] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_do_not_score(wrong: float) -> None:
    """The best of them would be class 0, which is right for three."""
    values = validate(criterion("accuracy"), torch.full_like(LOGITS, wrong), GOLD, (7,))
    assert values["accuracy"] == 0


def test_the_loss_is_fairseqs() -> None:
    loss, count, values = criterion()(Given().train(), next(iter(batches(LOGITS, GOLD, (7,)))))
    expected = nn.functional.cross_entropy(LOGITS, GOLD, reduction="sum")
    torch.testing.assert_close(loss, expected)
    assert count == 7
    assert "rows" not in values  # collected outside of training only
    assert DietSentencePredictionCriterion.logging_outputs_can_be_summed() is False


def test_metrics_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="'pearson'"):
        criterion("pearson")
    with pytest.raises(UserError, match="'accuracy'"):
        criterion("accuracy", regression=True)
    assert criterion().metrics == ["accuracy"]
    assert criterion(regression=True).metrics == ["pearson"]
