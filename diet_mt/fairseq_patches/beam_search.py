"""Decoding by this package's beam search wherever it serves.

fairseq's tasks make their generator in one place, and ``fairseq-generate``,
``fairseq-interactive``, ``--eval-bleu`` and the Python interface all ask there. Replaced:
``FairseqTask.build_generator``, by a method that names another class of generator where nobody else
has. ``decoding/generator.py`` says when, and how to force either.

fairseq's own search blocks repeated n-grams by comparing them with the end of its buffer, which is
padding until the longest hypothesis (fairseq #5206). ``NGramRepeatBlock._no_repeat_ngram`` gets the
tokens so far instead.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional

from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..decoding.generator import own_generator
from ..layers.decoder import DietDecoder


def with_own_search(build_generator: Callable[..., Any]) -> Callable[..., Any]:
    """``build_generator(task, models, args, ...)`` with our search where it serves."""

    @functools.wraps(build_generator)
    def wrapped(
        task: FairseqTask,
        models: Any,
        args: Any,
        seq_gen_cls: Optional[type] = None,
        extra_gen_cls_kwargs: Optional[Dict[str, Any]] = None,
        prefix_allowed_tokens_fn: Any = None,
    ) -> Any:
        extra = dict(extra_gen_cls_kwargs or {})
        given = {}
        if prefix_allowed_tokens_fn is not None:
            given = {"prefix_allowed_tokens_fn": prefix_allowed_tokens_fn}
        if seq_gen_cls is None:
            seq_gen_cls = own_generator(models, args, "fairseq", {**extra, **given})
        for model in models:  # as prepare_for_inference_ does, where it was called
            if isinstance(getattr(model, "decoder", None), DietDecoder):
                model.decoder.need_attn = bool(getattr(args, "print_alignment", None))
        return build_generator(
            task, models, args, seq_gen_cls=seq_gen_cls, extra_gen_cls_kwargs=extra, **given
        )

    return wrapped


def of_tokens_so_far(block: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``block(self, tokens, lprobs, bsz, beam_size, step)`` without the rest of the buffer."""

    @functools.wraps(block)
    def wrapped(
        self: NGramRepeatBlock, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
    ) -> Tensor:
        return block(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)

    return wrapped


FairseqTask.build_generator = with_own_search(FairseqTask.build_generator)
NGramRepeatBlock._no_repeat_ngram = of_tokens_so_far(NGramRepeatBlock._no_repeat_ngram)
