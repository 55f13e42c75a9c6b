"""Segments of sentence pairs: from the data, exact, whatever the sentences hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary, indexed_dataset
from torch import Tensor

from diet_mt.errors import UserError
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


def labels() -> Dictionary:
    symbols = Dictionary()
    for name in ("no", "yes"):
        symbols.add_symbol(name)
    return symbols


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("pairs")
    write(folder / "input0" / "train", FIRST, dictionary())
    write(folder / "input1" / "train", SECOND, dictionary())
    write(folder / "label" / "train", [[4 + label] for label in LABELS], labels())
    return folder


@pytest.fixture(scope="module")
def singles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("singles")
    write(folder / "input0" / "train", FIRST, dictionary())
    write(folder / "label" / "train", [[4 + label] for label in LABELS], labels())
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


def test_every_token_of_a_pair_has_the_segment_of_its_sentence(pairs: Path) -> None:
    """Sentences with separators inside, and an empty one."""
    found = list(examples(loaded(pairs)))
    assert found == [(*by_hand(number), label) for number, label in enumerate(LABELS)]


@pytest.mark.parametrize("longest", range(1, 13))
def test_segments_are_exact_under_truncation(pairs: Path, longest: int) -> None:
    """The end is cut off, of the second sentence or of both."""
    dataset = loaded(pairs, shorten_method="truncate", max_positions=longest)
    for number, (tokens, segments, _) in enumerate(examples(dataset)):
        expected_tokens, expected_segments = by_hand(number)
        assert tokens == expected_tokens[:longest]
        assert segments == expected_segments[:longest]


@pytest.mark.parametrize(
    ("init_token", "separator_token", "begin", "between"),
    [(None, None, (), ()), (None, 7, (), (7,)), (BOS, None, (BOS,), ()), (9, 7, (9,), (7,))],
)
def test_other_marks_than_those_of_the_recipes(
    pairs: Path,
    init_token: int | None,
    separator_token: int | None,
    begin: tuple[int, ...],
    between: tuple[int, ...],
) -> None:
    dataset = loaded(pairs, init_token=init_token, separator_token=separator_token)
    for number, (tokens, segments, _) in enumerate(examples(dataset)):
        assert (tokens, segments) == by_hand(number, begin, between)


def test_single_sentences_are_of_one_segment(singles: Path) -> None:
    for number, (tokens, segments, _) in enumerate(examples(loaded(singles))):
        assert tokens == [BOS, *FIRST[number], EOS]
        assert segments == [0] * len(tokens)


@pytest.mark.parametrize("seed", [1, 2])
def test_segments_are_shuffled_with_their_sentences(pairs: Path, seed: int) -> None:
    dataset = loaded(pairs, no_shuffle=False, seed=seed)
    order = dataset.ordered_indices().tolist()
    assert sorted(order) == list(range(len(FIRST)))
    assert order != sorted(order)
    batch = dataset.collater([dataset[index] for index in order])
    for place, index in enumerate(order):
        tokens, segments = by_hand(index)
        assert batch["net_input"]["src_tokens"][place, : len(tokens)].tolist() == tokens
        assert batch["net_input"]["segment_ids"][place, : len(tokens)].tolist() == segments


def test_batches_are_padded_as_their_tokens(pairs: Path) -> None:
    dataset = loaded(pairs)
    batch = dataset.collater([dataset[index] for index in range(len(dataset))])
    tokens: Tensor = batch["net_input"]["src_tokens"]
    segments: Tensor = batch["net_input"]["segment_ids"]
    assert segments.shape == tokens.shape
    assert segments.dtype == torch.int64
    lengths = [len(by_hand(number)[0]) for number in range(len(FIRST))]
    assert batch["net_input"]["src_lengths"].tolist() == lengths
    for row, length in enumerate(lengths):
        assert (tokens[row, length:] == PAD).all()
        assert (segments[row, length:] == 0).all()
        assert segments[row, :length].tolist() == by_hand(row)[1]


def test_random_crops_are_refused_where_they_are_made(pairs: Path) -> None:
    with pytest.raises(UserError, match=r"--shorten-method random_crop: .*use truncate"):
        loaded(pairs, shorten_method="random_crop")
    with pytest.raises(UserError, match="--shorten-method random_crop"):
        loaded(pairs, shorten_method="random_crop", shorten_data_split_list="valid,train")
    dataset = loaded(pairs, shorten_method="random_crop", shorten_data_split_list="train1,valid")
    assert len(list(examples(dataset))) == len(FIRST)


def test_what_the_model_cannot_read_is_not_left_out(pairs: Path) -> None:
    longest = max(len(by_hand(number)[0]) for number in range(len(FIRST)))
    assert len(list(examples(loaded(pairs, max_positions=longest)))) == len(FIRST)
    with pytest.raises(
        UserError, match=f"up to {longest} tokens, but --max-positions {longest - 1}"
    ):
        loaded(pairs, max_positions=longest - 1)
