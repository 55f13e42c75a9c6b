"""A run that continues has the batches of one that never stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fairseq.data import FairseqDataset
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
