"""Operators of one training step, counted without a GPU.

Model and batch are tensors on the device ``meta``, which compute nothing and take the branches of a
GPU. Where torch itself requires CUDA, substitutes call the GPU kernels: attention and dropout are
one operator each. Each system runs in its own process, stock fairseq without the plugin.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from fairseq.utils import apply_to_sample
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from .. import register
from ..system.errors import UserError
from ..system.files import PLUGIN
from ..system.options import need_known
from .requests import Operators
from .rows import Record, environment, quartiles
from .worker import RANDOM_DATA, Job, System

PARTS = ("forward", "backward", "update")
_NO_KERNEL = ("empty", "new_empty", "_unsafe_view")  # in addition to views
# Copies of Python's numbers to the device, for which torch dispatches no operator.
_COPYING = [(torch, "tensor"), (torch, "as_tensor"), (Tensor, "new_tensor")]
_READ = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select")


class Counted(TorchDispatchMode):
    """Operators, views and waits for the device in each part of a training step."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device, self.part = device, "update"
        self.kernels: Counter[str] = Counter()
        self.views: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()

    def __enter__(self) -> Counted:
        self._patches = ExitStack()
        for owner, name in _COPYING:
            own = self._copying(getattr(owner, name))
            self._patches.enter_context(patch.object(owner, name, own))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._patches.close()

    def _copying(self, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def wrapped(*given: Any, **options: Any) -> Tensor:
            copy, numbers = make(*given, **options), not any(map(torch.is_tensor, given[-1:]))
            self.waits[self.part] += copy.device.type == self.device != "cpu" and numbers
            return copy

        return wrapped

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.name().partition("::")[2].partition(".")[0]
        result = None
        if self._waits(name, args, kwargs):
            self.waits[self.part] += 1
            result = _read(name, args, kwargs) if self.device == "meta" else None
        if result is None:
            result = func(*args, **kwargs)
        tensors = (x for x in tree_iter((args, result)) if isinstance(x, Tensor))
        if any(x.device.type == self.device for x in tensors):
            free = func.is_view or name.startswith(_NO_KERNEL)
            (self.views if free else self.kernels)[self.part] += 1
        return result

    def _waits(self, name: str, args: Any, kwargs: dict[str, Any]) -> bool:
        """Whether Python would wait for a GPU."""
        if name in _READ:
            return any(torch.is_tensor(x) and x.device.type == self.device for x in args)
        if name in ("index", "index_put", "index_put_"):  # of a mask: nonzero
            return any(x is not None and x.dtype == torch.bool for x in args[1])
        if name == "_to_copy":
            return torch.device(kwargs.get("device") or args[0].device).type != args[0].device.type
        return name == "copy_" and args[0].device.type != args[1].device.type


def _read(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """A possible result of a read from the GPU: True or 1; None if the operator can run."""
    if name in ("_local_scalar_dense", "is_nonzero"):
        return torch.ones((), dtype=args[0].dtype, device="cpu").item()
    if name == "_to_copy" and torch.device(kwargs["device"]).type == "cpu":
        return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype, device="cpu")
    return None


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.where(attn_mask, 0.0, float("-inf")).to(q.dtype)
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    out: Tensor = kernel(q, k, v, attn_mask, True, dropout_p, is_causal, scale=scale)[0]
    return out


def _dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(x, p, True)[0] if training and p else x


@contextmanager
def as_on_a_gpu(device: str) -> Iterator[None]:
    """Context in which fairseq uses ``meta`` as its GPU, with a GPU's kernels."""
    with ExitStack() as stack:
        if device == "meta":
            stack.enter_context(patch.object(F, "scaled_dot_product_attention", _attention))
            stack.enter_context(patch.object(F, "dropout", _dropout))
        stack.enter_context(patch.object(torch.cuda, "current_device", lambda: None))  # no index
        yield


def count(words: list[str], precision: str, device: str, vocabulary: int) -> Record:
    """Operator counts of the third step of fairseq's trainer on a random batch."""
    system = System(Job(words=words, user_dir=None, threads=1, vocabulary=vocabulary, batches=1))
    cfg = system.cfg
    cfg.common.cpu = True
    if precision != "fp32":
        cfg.common[precision] = True
    (batch,) = system.batches("train", cfg.dataset.max_tokens)
    model, criterion = system.new_model(), system.task.build_criterion(cfg.criterion)
    counted = Counted(device)

    def forward(*_: Any) -> None:
        counted.part = "forward"

    def backward(loss: Tensor) -> None:
        counted.part = "backward"
        own_backward(loss)
        counted.part = "update"

    def clip(max_norm: float) -> Tensor:
        with patch.multiple(torch.cuda, is_available=lambda: True, current_device=lambda: device):
            norm: Tensor = own_clip(max_norm)  # fairseq gathers norms on its GPU
            return norm

    with as_on_a_gpu(device):
        trainer = Trainer(cfg, system.task, model, criterion, None)
        model.to(device)
        trainer.lr_step_begin_epoch(1)
        own_backward, own_clip = trainer.optimizer.backward, trainer.clip_grad_norm
        trainer.optimizer.backward, trainer.clip_grad_norm = backward, clip
        if precision == "fp16":  # its comparisons with infinity would be True
            scaler = trainer.optimizer.scaler
            own_check = scaler.check_overflow
            scaler.check_overflow = lambda norm: own_check(float(norm))
        criterion.register_forward_pre_hook(forward)
        batch = apply_to_sample(lambda x: x.to(device), batch)
        for mode in (Counted(device), Counted(device), counted):  # the first steps allocate states
            with mode, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fairseq's, about apex
                trainer.train_step([batch])
        metrics.reset()  # they have no values
    kernels, waits = counted.kernels, counted.waits
    passes = waits["forward"] + waits["backward"]
    totals = {"operators": kernels.total(), "views": counted.views.total(), "waits": waits.total()}
    return {**totals, **{part: kernels[part] for part in PARTS}, "waits_in_passes": passes}


def measure_all(args: Operators) -> None:
    """Prints a record for each system and precision. ``args``: of ``diet-mt bench operators``."""
    from ..models.architectures import SIZES
    from ..positions import COMMAND_NAMES
    from .speed import STOCK, model_words, training_words

    need_known("system", args.systems, {STOCK, *COMMAND_NAMES})
    need_known("size", [args.size], SIZES)
    facts = environment("cpu", "bench operators", args.words)
    facts |= {"device": args.device, "tokens": args.tokens}
    for system in args.systems:
        words = [RANDOM_DATA, *model_words(system, SIZES[args.size])]
        words += [*training_words(0.1), "--max-tokens", str(args.tokens)]
        job = {"words": words, "device": args.device, "vocabulary": args.vocabulary}
        order = {"plugin": system != STOCK, "precisions": args.precisions, "job": job}
        command = [sys.executable, "-m", __spec__.name, json.dumps(order)]
        done = subprocess.run(command, cwd=PLUGIN.parent, stdout=subprocess.PIPE, encoding="utf-8")
        if done.returncode:
            raise UserError(f"{system}: ended with status {done.returncode}")
        for precision, line in zip(args.precisions, done.stdout.splitlines(), strict=True):
            counts: Record = json.loads(line)
            about: Record = {"size": args.size, "system": system, "measure": "operators"}
            about |= {"unit": "operators"} | quartiles("", [counts["operators"]])
            print(json.dumps({**about, **counts, **facts, "precision": precision}), flush=True)


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    if order["plugin"]:
        register()
    for precision in order["precisions"]:
        print(json.dumps(count(precision=precision, **order["job"])), flush=True)
