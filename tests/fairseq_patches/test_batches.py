"""Batches hold every sentence, and are the same in a resumed run as in one that never stopped."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from fairseq.data import FairseqDataset
from fairseq.data.data_utils_fast import batch_by_size_vec
from fairseq.tasks import FairseqTask

from diet_mt.fairseq_patches.batches import batch_as_at_first


class Dataset:
    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Iterator:
    def __init__(self, batches: str, epoch: int) -> None:
        self.batches, self.epoch = batches, epoch


class Task:
    """fairseq's task, as far as batches go: those of an epoch are named after it."""

    def __init__(self, reuse: bool) -> None:
        self.reuse = reuse
        self.dataset_to_epoch_iter: dict[Dataset, Iterator] = {}

    def can_reuse_epoch_itr(self, dataset: Dataset) -> bool:
        return self.reuse

    def make(self, dataset: Dataset, *, epoch: int = 1, **options: Any) -> Iterator:
        if self.reuse and dataset in self.dataset_to_epoch_iter:
            return self.dataset_to_epoch_iter[dataset]
        dataset.set_epoch(epoch)
        made = self.dataset_to_epoch_iter[dataset] = Iterator(f"batches of {epoch}", epoch)
        return made


@pytest.mark.parametrize(
    ("reuse", "options", "batches"),
    [
        (True, {}, "batches of 1"),  # made once: they must be those of an unbroken run
        (False, {}, "batches of 5"),  # made anew for each epoch, as in an unbroken run
        (True, {"disable_iterator_cache": True}, "batches of 5"),
        (True, {"update_epoch_batch_itr": True}, "batches of 5"),
    ],
)
def test_a_run_that_goes_on_has_the_batches_of_one_that_never_stopped(
    reuse: bool, options: dict[str, bool], batches: str
) -> None:
    task, dataset = Task(reuse), Dataset()
    make = batch_as_at_first(Task.make)
    iterator = make(task, dataset, epoch=5, **options)
    assert (iterator.batches, iterator.epoch, dataset.epoch) == (batches, 5, 5)


class Noisy(FairseqDataset):
    """Four items, each of which is the epoch, as the words that masked_lm hides depend on it."""

    epoch = 0
    can_reuse_epoch_itr_across_epochs = True

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __getitem__(self, index: int) -> int:
        return self.epoch

    def __len__(self) -> int:
        return 4

    def num_tokens(self, index: int) -> int:
        return 1

    def num_tokens_vec(self, indices: Any) -> Any:
        return np.ones(len(indices), dtype=np.int64)

    def collater(self, samples: list[int]) -> list[int]:
        return samples


@pytest.mark.parametrize("workers", [0, 1])
def test_workers_see_the_epoch_that_they_work_in(workers: int) -> None:
    """From the first one on, and from another one on."""
    for start in (1, 3):
        task = FairseqTask(None)
        iterator = task.get_batch_iterator(
            Noisy(), max_sentences=2, epoch=start, num_workers=workers
        )
        for epoch in (start, start + 1):
            assert list(iterator.next_epoch_itr()) == [[epoch, epoch]] * 2


def test_an_iterator_in_use_is_left_alone() -> None:
    task, dataset = Task(reuse=True), Dataset()
    make = batch_as_at_first(Task.make)
    first = make(task, dataset, epoch=1)
    first.epoch = 2  # it counts by itself
    assert make(task, dataset, epoch=3) is first
    assert first.epoch == 2


class Sentences(FairseqDataset):
    """So many sentences, of 1, 2, ... tokens in turn; collated to their numbers."""

    def __init__(self, count: int, shapes: list[tuple[int, int]] | None = None) -> None:
        self.sizes = np.arange(count, dtype=np.int64) % 7 + 1
        self.shapes = shapes

    def __getitem__(self, index: int) -> int:
        return index

    def __len__(self) -> int:
        return len(self.sizes)

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    size = num_tokens

    def num_tokens_vec(self, indices: Any) -> Any:
        return self.sizes[indices]

    def get_batch_shapes(self) -> list[tuple[int, int]] | None:
        return self.shapes

    def collater(self, samples: list[int]) -> list[int]:
        return samples


@pytest.mark.parametrize("multiple", [1, 8, 16])
@pytest.mark.parametrize("limits", [(-1, -1), (-1, 3), (30, -1), (70, 12)])
def test_every_sentence_is_in_a_batch(multiple: int, limits: tuple[int, int]) -> None:
    """The batches of stock fairseq, whichever fairseq runs."""
    for count in range(1, 21):
        dataset, indices = Sentences(count), np.arange(count)
        batches = dataset.batch_by_size(indices, *limits, multiple)
        assert [*map(list, batches)] == [
            *map(list, batch_by_size_vec(indices, dataset.sizes, *limits, multiple))
        ]
        assert np.concatenate(batches).tolist() == indices.tolist()


def test_fixed_shapes_and_no_sentences() -> None:
    batches = Sentences(13, [(4, 7)]).batch_by_size(np.arange(13), required_batch_size_multiple=8)
    assert [*map(len, batches)] == [4, 4, 4, 1]
    assert Sentences(0).batch_by_size(np.arange(0), required_batch_size_multiple=8) == []


def test_shards_together_hold_every_sentence() -> None:
    found = []
    for shard in range(3):
        iterator = FairseqTask(None).get_batch_iterator(
            Sentences(19),
            max_sentences=4,
            required_batch_size_multiple=8,
            num_shards=3,
            shard_id=shard,
        )
        found += [number for batch in iterator.next_epoch_itr() for number in batch]
    assert sorted(found) == list(range(19))


@pytest.mark.parametrize(("longest", "counts"), [(5, ("4", "19", "15")), (7, ())])
def test_the_log_counts_what_is_too_long(
    caplog: pytest.LogCaptureFixture, longest: int, counts: tuple[str, ...]
) -> None:
    with caplog.at_level(logging.WARNING, "diet_mt"):
        iterator = FairseqTask(None).get_batch_iterator(
            Sentences(19), max_positions=longest, ignore_invalid_inputs=True
        )
    lines = [line.getMessage() for line in caplog.records if line.name.startswith("diet_mt")]
    assert [line for line in lines if not all(count in line.split() for count in counts)] == []
    assert len(lines) == bool(counts)
    decoded = [number for batch in iterator.next_epoch_itr() for number in batch]
    assert len(decoded) == 19 - 4 * bool(counts)
