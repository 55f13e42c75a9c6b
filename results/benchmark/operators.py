"""Operators of one training step of base, counted on torch's meta device: no GPU needed.

    python results/benchmark/operators.py > results/benchmark/operators.jsonl
    python results/benchmark/operators.py stock diet_rel

Counts the operators that fairseq's trainer dispatches for a batch of random sentences, and how
often Python would wait for the device. Most operators launch one GPU kernel; views and allocations,
which launch none, are counted separately. Tensors on ``meta`` compute nothing and take the branches
of a GPU; where torch itself requires CUDA, substitutes call its kernels. Each system has a process
of its own, stock fairseq without the plugin.
"""

import json
import subprocess
import sys
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
import torch.nn.functional as F
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from fairseq.utils import apply_to_sample
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from diet_mt import register
from diet_mt.bench.rows import environment, quartiles
from diet_mt.bench.worker import RANDOM_DATA, Job, System

PRECISIONS = ("fp32", "fp16", "bf16")
TOKENS, VOCABULARY = 16_384, 32_768
PARTS = ("forward", "backward", "update")
NO_KERNEL = ("empty", "new_empty", "_unsafe_view")  # in addition to views
# Copies of Python's numbers to the device, for which torch dispatches no operator.
COPYING = [(torch, "tensor"), (torch, "as_tensor"), (Tensor, "new_tensor")]
READ = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select")


class Counted(TorchDispatchMode):
    """Operators, views and waits for the device in each part of a training step."""

    def __init__(self, device):
        super().__init__()
        self.device, self.part = device, "update"
        self.kernels, self.views, self.waits = Counter(), Counter(), Counter()

    def __enter__(self):
        self._patches = ExitStack()
        for owner, name in COPYING:
            own = self._copying(getattr(owner, name))
            self._patches.enter_context(patch.object(owner, name, own))
        super().__enter__()
        return self

    def __exit__(self, *error):
        super().__exit__(*error)
        self._patches.close()

    def _copying(self, make):
        def wrapped(*given, **options):
            copy, numbers = make(*given, **options), not any(map(torch.is_tensor, given[-1:]))
            self.waits[self.part] += copy.device.type == self.device != "cpu" and numbers
            return copy

        return wrapped

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.name().partition("::")[2].partition(".")[0]
        result = None
        if self._waits(name, args, kwargs):
            self.waits[self.part] += 1
            result = read(name, args, kwargs) if self.device == "meta" else None
        if result is None:
            result = func(*args, **kwargs)
        tensors = (x for x in tree_iter((args, result)) if isinstance(x, Tensor))
        if any(x.device.type == self.device for x in tensors):
            free = func.is_view or name.startswith(NO_KERNEL)
            (self.views if free else self.kernels)[self.part] += 1
        return result

    def _waits(self, name, args, kwargs):
        """Whether Python would wait for a GPU."""
        if name in READ:
            return any(torch.is_tensor(x) and x.device.type == self.device for x in args)
        if name in ("index", "index_put", "index_put_"):  # of a mask: nonzero
            return any(x is not None and x.dtype == torch.bool for x in args[1])
        if name == "_to_copy":
            return torch.device(kwargs.get("device") or args[0].device).type != args[0].device.type
        return name == "copy_" and args[0].device.type != args[1].device.type


def read(name, args, kwargs):
    """A possible result of a read from the GPU: True or 1; None if the operator can run."""
    if name in ("_local_scalar_dense", "is_nonzero"):
        return torch.ones((), dtype=args[0].dtype, device="cpu").item()
    if name == "_to_copy" and torch.device(kwargs["device"]).type == "cpu":
        return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype, device="cpu")
    return None


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **_):
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.where(attn_mask, 0.0, float("-inf")).to(q.dtype)
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    return kernel(q, k, v, attn_mask, True, dropout_p, is_causal, scale=scale)[0]


def dropout(x, p=0.5, training=True, inplace=False):
    return torch.native_dropout(x, p, True)[0] if training and p else x


@contextmanager
def as_on_a_gpu(device):
    """Context in which fairseq uses ``meta`` as its GPU, with a GPU's kernels."""
    with ExitStack() as stack:
        if device == "meta":
            stack.enter_context(patch.object(F, "scaled_dot_product_attention", attention))
            stack.enter_context(patch.object(F, "dropout", dropout))
        stack.enter_context(patch.object(torch.cuda, "current_device", lambda: None))  # no index
        yield


def count(words, precision, device, vocabulary):
    """Operator counts of the third step of fairseq's trainer on a random batch."""
    system = System(Job(words=words, user_dir=None, threads=1, vocabulary=vocabulary, batches=1))
    cfg = system.cfg
    cfg.common.cpu = True
    if precision != "fp32":
        cfg.common[precision] = True
    (batch,) = system.batches("train", cfg.dataset.max_tokens)
    model, criterion = system.new_model(), system.task.build_criterion(cfg.criterion)
    counted = Counted(device)

    def forward(*_):
        counted.part = "forward"

    def backward(loss):
        counted.part = "backward"
        own_backward(loss)
        counted.part = "update"

    def clip(max_norm):
        with patch.multiple(torch.cuda, is_available=lambda: True, current_device=lambda: device):
            return own_clip(max_norm)  # fairseq gathers norms on its GPU

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


def main(*systems):
    # Not in the process of stock: they bring the plugin.
    from diet_mt.bench.speed import STOCK, model_words, training_words
    from diet_mt.models.architectures import SIZES

    facts = environment("cpu", "", ()) | {"device": "meta", "tokens": TOKENS}
    facts["command"] = f"python {' '.join(sys.argv)}"
    for system in systems or (STOCK, "sinusoidal", "rotary", "diet_rel", "diet_abs"):
        words = [RANDOM_DATA, *model_words(system, SIZES["base"]), *training_words(0.1)]
        order = json.dumps([system != STOCK, [*words, "--max-tokens", str(TOKENS)]])
        command = [sys.executable, __file__, "--one", order]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        for precision, line in zip(PRECISIONS, done.stdout.splitlines(), strict=True):
            counts = json.loads(line)
            about = {"size": "base", "system": system, "measure": "operators"}
            about |= {"unit": "operators"} | quartiles("", [counts["operators"]])
            print(json.dumps({**about, **counts, **facts, "precision": precision}), flush=True)


def one(order):
    with_plugin, words = json.loads(order)
    if with_plugin:
        register()
    for precision in PRECISIONS:
        print(json.dumps(count(words, precision, "meta", VOCABULARY)), flush=True)


if __name__ == "__main__":
    one(sys.argv[2]) if sys.argv[1:2] == ["--one"] else main(*sys.argv[1:])
