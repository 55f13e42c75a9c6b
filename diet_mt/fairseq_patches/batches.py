"""A run that continues has the batches of one that never stopped.

A task whose iterator serves all epochs makes its batches once and then only shuffles them.
fairseq-fixed seeds that with the epoch at which the process starts, so a run that continues in
epoch 5 had other batches than one that was never stopped. It also keeps the workers, each with the
dataset as it was in that epoch: masked_lm then hides the same words in every epoch, and others in a
run that continues. Replaced: ``FairseqTask.get_batch_iterator``, by a method that calls it.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from fairseq.tasks import FairseqTask


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


FairseqTask.get_batch_iterator = batch_as_at_first(FairseqTask.get_batch_iterator)
