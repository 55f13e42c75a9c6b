"""Batches without lost sentences, and the same in a resumed run as in one that never stopped.

fairseq-fixed drops the last batch of a data set unless its size is a multiple of
``--required-batch-size-multiple`` (default 8), in training, validation and decoding (fairseq #5036,
#5094, #5351). Stock fairseq keeps it. Replaced: ``data_utils.batch_by_size``, through which every
data set makes its batches, by a function that appends what is missing.

Sentences that are too long are skipped where the user allows it, and scores are then over fewer
sentences. Replaced: ``FairseqTask.filter_indices_by_size``, by a method that logs how many remain.

A task whose iterator serves all epochs makes its batches once and then only shuffles them.
fairseq-fixed seeds that with the epoch at which the process starts, so a run that continues in
epoch 5 had other batches than one that was never stopped. It also keeps the workers, each with the
dataset as it was in that epoch: masked_lm then hides the same words in every epoch, and others in a
run that continues. Replaced: ``FairseqTask.get_batch_iterator``, by a method that calls it.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Callable

import numpy as np
from fairseq.data import data_utils
from fairseq.tasks import FairseqTask

from ..errors import UserError

logger = logging.getLogger(__name__)


def with_last_batch(batch_by_size: Callable[..., Any]) -> Callable[..., Any]:
    """``batch_by_size(indices, ...)``, whose batches hold every index."""

    @functools.wraps(batch_by_size)
    def wrapped(indices: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, dtype=np.int64, count=-1)
        if not len(indices):  # fairseq-fixed: IndexError
            return []
        batches = batch_by_size(indices, *args, **kwargs)
        # Batches are consecutive indices.
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if len(rest) else batches

    return wrapped


def with_count(filter_indices_by_size: Callable[..., Any]) -> Callable[..., Any]:
    """``filter_indices_by_size(task, indices, ...)`` that logs how many of them are skipped."""

    @functools.wraps(filter_indices_by_size)
    def wrapped(task: FairseqTask, indices: Any, *args: Any, **kwargs: Any) -> Any:
        remaining = filter_indices_by_size(task, indices, *args, **kwargs)
        if len(indices) and not len(remaining):
            raise UserError(
                f"all {len(indices):,} sentences are too long; see --max-source-positions, "
                "--max-target-positions and --beyond-table"
            )
        if skipped := len(indices) - len(remaining):
            logger.warning(
                f"{skipped:,} of {len(indices):,} sentences are too long and skipped: loss and "
                f"scores are over {len(remaining):,} sentences"
            )
        return remaining

    return wrapped


def batch_as_at_first(get_batch_iterator: Callable[..., Any]) -> Callable[..., Any]:
    """``get_batch_iterator(task, dataset, ..., epoch=N)`` that makes the batches of epoch 1, and
    starts new workers in every epoch.
    """

    @functools.wraps(get_batch_iterator)
    def wrapped(task: FairseqTask, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        epoch = kwargs.get("epoch", 1)
        every_epoch_anew = (
            kwargs.get("disable_iterator_cache")
            or kwargs.get("update_epoch_batch_itr")
            or not task.can_reuse_epoch_itr(dataset)
        )
        as_asked = epoch <= 1 or every_epoch_anew or dataset in task.dataset_to_epoch_iter
        given = kwargs if as_asked else {**kwargs, "epoch": 1}
        iterator = get_batch_iterator(task, dataset, *args, **given)
        iterator.reuse_dataloader = False
        if not as_asked:
            dataset.set_epoch(epoch)
            iterator.epoch = epoch
        return iterator

    return wrapped


data_utils.batch_by_size = with_last_batch(data_utils.batch_by_size)
FairseqTask.filter_indices_by_size = with_count(FairseqTask.filter_indices_by_size)
FairseqTask.get_batch_iterator = batch_as_at_first(FairseqTask.get_batch_iterator)
