"""On a GPU: what models, searches and commands give on a CPU, in every precision."""

from __future__ import annotations

import copy
import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from diet_mt.decoding.candidates import Limits, Vocabulary
from diet_mt.decoding.generator import BeamSearchGenerator
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import attention, cross_entropy

from .commands.encoders import RESET, Encoders
from .commands.runner import ROOT, Command, Done, Runner, finish, run_alone, start
from .commands.test_train import place as place
from .commands.test_train import training
from .commands.workshop import ONE_CHECKPOINT, Workshop, losses, state, translations
from .decoding.test_parity import LENGTHS, PREFIXES, SequenceGenerator, assert_the_same
from .fairseq_patches import test_fused_adam as of_adam
from .models.test_precision import half_precision, tolerance
from .models.test_search import Hypotheses, search, talkative
from .nn import test_dropout as of_dropout
from .nn.test_cross_entropy import WITH_PADS, Loss, both, fairseqs, values
from .processes import session_folder
from .toy import (
    ToyTask,
    build,
    close,
    collate,
    each_encoding,
    each_kind,
    sources,
    step_by_step,
    targets,
    without_weights,
)

pytestmark = pytest.mark.gpu

DEVICE = "cuda"
# Of the largest number: float64; and float32, where a fused kernel sums in another order.
EXACT, SINGLE = 1e-10, 1e-3
# Heads of 8 numbers, as fused kernels ask; a length that is a multiple of 16, and one that is not.
LONG = {"max_source_positions": 330, "max_target_positions": 330, "encoder_embed_dim": 24}
LONG_BATCH = collate(sources((320, 301, 7)), "left"), collate(targets((303, 290, 5)))
# No padding; 322 keys of 304 queries are parts of lines of 624 numbers, a multiple of 8.
FULL_BATCH = collate(sources((322, 322)), "left"), collate(targets((304, 304)))
long_batch = pytest.mark.parametrize("given", [LONG_BATCH, FULL_BATCH], ids=["padded", "full"])
precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
FUSED = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION]


def batch() -> tuple[Tensor, Tensor]:
    return collate(sources(), "left"), collate(targets())


def moved(model: DietTransformerModel) -> DietTransformerModel:
    """A copy on the GPU."""
    return copy.deepcopy(model).to(DEVICE)


def passed(model: DietTransformerModel, source: Tensor, previous: Tensor) -> dict[str, Tensor]:
    """Logits and the gradients of all parameters, in float64 on the CPU."""
    device = next(model.parameters()).device
    logits, _ = model(source.to(device), None, previous.to(device))
    assert logits.device == device
    logits.double().sin().sum().backward()
    actual = {"logits": logits.detach()}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        actual[name] = parameter.grad
    model.zero_grad()
    return {name: value.double().cpu() for name, value in actual.items()}


def near(actual: dict[str, Tensor], expected: dict[str, Tensor], rounding: float) -> None:
    """Fails unless all differ by less than ``rounding`` times the largest number of all."""
    assert actual.keys() == expected.keys()
    largest = max(value.abs().max().item() for value in expected.values())
    for name, value in expected.items():
        assert (actual[name] - value).abs().max().item() <= rounding * largest, name


@each_encoding
def test_logits_and_gradients_are_those_of_the_cpu(encoding: str, sharing: str | None) -> None:
    """And step by step, the logits are those of the full pass."""
    model = build(encoding, sharing)
    there = moved(model)
    near(passed(there, *batch()), passed(model, *batch()), EXACT)
    source, previous = batch()[0].to(DEVICE), torch.randint(4, 44, (5, 6)).to(DEVICE)
    with torch.no_grad():
        close(step_by_step(there.eval(), source, previous), there(source, None, previous)[0])


@half_precision
@each_encoding
def test_half_precision_is_close(encoding: str, sharing: str | None, dtype: torch.dtype) -> None:
    """In one pass and step by step; and every parameter gets a finite gradient."""
    model = build(encoding, sharing)
    expected = model(*(batch()[0], None, batch()[1]))[0].detach()
    limit = tolerance(dtype, expected)
    half = moved(model).to(dtype)
    actual = passed(half, *batch())
    torch.testing.assert_close(actual["logits"], expected, rtol=0, atol=limit)
    assert all(value.isfinite().all() for value in actual.values())
    with torch.no_grad():  # the shortest target has two tokens
        steps = step_by_step(
            half.eval(), *(tokens.to(DEVICE) for tokens in (batch()[0], batch()[1][:, :2]))
        )
    assert steps.dtype == dtype
    torch.testing.assert_close(steps.double().cpu(), expected[:, :2], rtol=0, atol=limit)


@half_precision
@each_encoding
def test_autocast_is_close(encoding: str, sharing: str | None, dtype: torch.dtype) -> None:
    model = build(encoding, sharing).float()
    expected = passed(model, *batch())
    with torch.autocast(DEVICE, dtype):
        actual = passed(moved(model), *batch())
    limit = tolerance(dtype, expected["logits"])
    torch.testing.assert_close(actual["logits"], expected["logits"], rtol=0, atol=limit)
    assert all(value.isfinite().all() for value in actual.values())


def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on attention writes its logits out."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: False)


@long_batch
@each_encoding
def test_fused_attention_equals_the_plain_one(
    encoding: str,
    sharing: str | None,
    given: tuple[Tensor, Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over long sentences: logits, all gradients, and weights beside the output."""
    model = moved(build(encoding, sharing, **LONG, **without_weights(encoding)).float())
    fused = passed(model, *given)
    source, previous = (tokens.to(DEVICE) for tokens in given)
    logits, extra = model(source, None, previous, alignment_layer=2)
    plain(monkeypatch)
    expected = passed(model, *given)
    near(fused, expected, SINGLE)
    near({"logits": logits.detach().cpu()}, {"logits": expected["logits"]}, SINGLE)
    shares = extra["attn"][0].sum(-1)
    torch.testing.assert_close(shares, torch.ones_like(shares))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@long_batch
@each_kind
def test_torch_has_a_fused_kernel_for_it(
    encoding: str,
    sharing: str | None,
    dtype: torch.dtype,
    given: tuple[Tensor, Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rather than separate steps, which need memory for all logits; forward and backward."""
    model = moved(build(encoding, sharing, **LONG, **without_weights(encoding)))
    half = copy.deepcopy(model).to(dtype)
    with sdpa_kernel(FUSED):
        actual = passed(half, *given)
    plain(monkeypatch)
    expected = passed(model, *given)["logits"]
    limit = max(tolerance(dtype, expected), SINGLE * expected.abs().max().item())
    torch.testing.assert_close(actual["logits"], expected, rtol=0, atol=limit)
    assert all(value.isfinite().all() for value in actual.values())


def searched(kind: Any, model: DietTransformerModel, prefix: Any = None, **more: Any) -> Hypotheses:
    """What a search finds where the model is, on the CPU then."""
    device = next(model.parameters()).device
    given = None if prefix is None else torch.tensor(prefix, device=device)
    actual = search(kind, model, collate(sources(LENGTHS), "left").to(device), given, **more)
    assert all(one["score"].device == device for hypotheses in actual for one in hypotheses)
    return [[{name: x.cpu() for name, x in one.items()} for one in each] for each in actual]


@each_encoding
def test_the_search_finds_what_it_finds_on_the_cpu(encoding: str, sharing: str | None) -> None:
    """And what fairseq's finds on the GPU."""
    model = talkative(encoding, sharing)
    ours = searched(BeamSearchGenerator, moved(model))
    assert_the_same(ours, searched(BeamSearchGenerator, model))
    assert_the_same(ours, searched(SequenceGenerator, moved(model)))


@each_encoding
def test_captured_steps_find_the_same(encoding: str, sharing: str | None) -> None:
    """In float64, over several batches, the second of which replays the graphs of the first."""
    model = talkative(encoding, sharing, max_target_positions=64)
    there = moved(model)
    there._is_generation_fast = True
    batches = [collate(sources(LENGTHS[start:]), "left") for start in (0, 0, 3)]
    settings = {"beam_size": 4, "max_len_b": 25, "len_penalty": 0.6}
    here, captured = (
        BeamSearchGenerator([each], ToyTask().target_dictionary, **settings)
        for each in (model, there)
    )
    for batch in batches:
        expected = here.generate([model], {"net_input": {"src_tokens": batch}})
        actual = captured.generate([there], {"net_input": {"src_tokens": batch.to(DEVICE)}})
        assert all(one["score"].device.type == DEVICE for each in actual for one in each)
        assert_the_same(
            [[{name: x.cpu() for name, x in one.items()} for one in each] for each in actual],
            expected,
        )
    assert captured._replays is not None
    assert captured._replays.captures
    assert captured._replays._graphs


@each_kind
def test_a_compiled_step(encoding: str, sharing: str | None) -> None:
    """Gradients of two batches of other lengths by the same graphs."""
    sizes = {"encoder_embed_dim": 24}
    model = moved(build(encoding, sharing, **sizes).float())
    other = moved(build(encoding, sharing, compile=True, **sizes).float())
    for lengths in ((7, 3, 5, 1, 6), (8, 4, 2)):
        source, previous = collate(sources(lengths), "left"), collate(targets(lengths))
        near(passed(other, source, previous), passed(model, source, previous), SINGLE)


WISHES: dict[str, dict[str, Any]] = {
    "prefixes": {"prefix": PREFIXES["some longer than others"], "min_len": 2},
    "an ended prefix": {"prefix": [[7, 2]] * len(LENGTHS)},
    "n-grams": {"no_repeat_ngram_size": 2, "min_len": 6},
    "suppressed words": {"tokens_to_suppress": ("word3", "word7"), "unk_penalty": 100.0},
    "one beam": {"beam_size": 1, "max_len_a": 0.5, "max_len_b": 1},
}


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.replace(" ", "-"))
def test_options_of_the_search(wish: str) -> None:
    model = talkative("diet-rel", None, seed=2)
    actual = searched(BeamSearchGenerator, moved(model), **WISHES[wish])
    assert_the_same(actual, searched(BeamSearchGenerator, model, **WISHES[wish]))


@torch.no_grad()
@precise
def test_the_best_of_a_large_vocabulary(dtype: torch.dtype) -> None:
    layer, features = nn.Linear(8, 10_007).to(dtype), torch.randn(21, 8, dtype=dtype)
    scores, limits = torch.randn(7, 3, dtype=dtype), Limits(pad=1, unk=3)
    values, *places = Vocabulary(layer).best(features, scores, 6, limits)
    there = Vocabulary(layer.to(DEVICE)), features.to(DEVICE), scores.to(DEVICE)
    actual, *others = there[0].best(*there[1:], 6, limits)
    torch.testing.assert_close(actual.cpu(), values)
    assert [each.tolist() for each in others] == [each.tolist() for each in places]


@precise
@both
def test_cross_entropy(form: Loss, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "_LOGITS", 1)
    monkeypatch.setattr(cross_entropy, "_ROWS", 5)  # several blocks

    def there(x: Tensor, weight: Tensor, words: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        loss, nll = form(x.to(DEVICE), weight.to(DEVICE), words.to(DEVICE), eps)
        assert loss.device.type == DEVICE
        return loss.cpu(), nll.cpu()

    actual = values(there, dtype, WITH_PADS, 0.1)
    expected = values(fairseqs, torch.float64, WITH_PADS, 0.1)
    for own, exact in zip(actual, expected, strict=True):
        rounding = 1e-12 if dtype == torch.float64 else 1e-5
        torch.testing.assert_close(own.double(), exact, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    own: Callable[..., Tensor] = of_dropout.dropout
    monkeypatch.setattr(of_dropout, "dropout", lambda x, p: own(x.to(DEVICE), p).cpu())
    of_dropout.test_rate_and_scale(p)
    of_dropout.test_gradient_is_dropped_with_the_value()
    of_dropout.test_follows_the_generator_of_torch()


def test_fused_adam() -> None:
    of_adam.assert_updates(DEVICE)


@pytest.mark.parametrize("max_norm", [0.0, 3.0], ids=["unclipped", "clipped"])
@pytest.mark.parametrize("precision", of_adam.PRECISIONS)
def test_adam_in_half_precision(
    precision: str, max_norm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the update waits for nothing."""
    of_adam.assert_precision(precision, max_norm, DEVICE, monkeypatch)


# Commands of the other tests shall see no GPU.
SEEN = {
    "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0"),
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
}
USED = re.compile(r"rank +0: capabilities = ")  # fairseq-train about its GPU


class OnGpu(Runner):
    """A new process for each command: what the fork server has done may be in CUDA's way."""

    def together(self, *commands: Command) -> list[Done]:
        program = [sys.executable, "-m"]
        return [
            run_alone([*program, f"fairseq_cli.{one.name}"], one, cwd=self._folder, **SEEN)
            for one in commands
        ]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = session_folder(tmp_path_factory) / "gpu"
    folder.mkdir(exist_ok=True)
    return Workshop(folder, OnGpu(folder))


def trained(done: Done, *updates: int) -> None:
    """Fails unless these updates were made on the GPU, each with a loss that is a number."""
    assert USED.search(done.ok().stdout)
    actual = losses(done.stdout)
    assert sorted(actual) == list(updates)
    assert all(math.isfinite(float(loss)) for loss in actual.values())


PRECISIONS = (
    "",
    "--fp16",
    "--bf16",
    "--amp",
    "--memory-efficient-fp16",
    "--quant-noise-scalar 0.5",
)


@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda words: words.split(" ")[0] or "fp32")
def test_training_and_going_on(workshop: Workshop, tmp_path: Path, precision: str) -> None:
    words = precision.split()
    trained(workshop.train("diet-rel", tmp_path, "--max-update", 3, *words), 1, 2, 3)
    rest = workshop.train("diet-rel", tmp_path, "--max-update", 5, *words)
    trained(rest, 4, 5)
    assert "@ 3 updates" in rest.stdout
    saved = state(tmp_path)
    assert all(weight.isfinite().all() for weight in saved["model"].values())
    common = saved["cfg"]["common"]  # where all but the noise is
    assert all(common.get(word[2:].replace("-", "_"), True) for word in words[:1])


def test_training_loses_what_it_loses_on_the_cpu(workshop: Workshop, tmp_path: Path) -> None:
    how = ("--max-update", 3, "--dropout", 0)
    here, there = (
        workshop.train("diet-rel", tmp_path / str(number), *how, *more).ok().stdout
        for number, more in enumerate([(), ("--cpu",)])
    )
    assert USED.search(here)
    assert not USED.search(there)
    expected = {update: float(loss) for update, loss in losses(there).items()}
    actual = {update: float(loss) for update, loss in losses(here).items()}
    assert actual == pytest.approx(expected, abs=0.01)


def test_translations_are_those_of_the_cpu(workshop: Workshop) -> None:
    ours, theirs = (
        translations(workshop.generate("diet-rel", *more).ok().stdout) for more in ((), ("--cpu",))
    )
    assert ours.keys() == theirs.keys()
    for number, actual in ours.items():
        assert actual.texts == theirs[number].texts
        assert actual.scores == pytest.approx(theirs[number].scores, abs=1e-3)
    half = translations(workshop.generate("diet-rel", "--fp16").ok().stdout)
    assert half.keys() == ours.keys()


def test_an_encoder_with_segments_in_fp16(workshop: Workshop, tmp_path: Path) -> None:
    encoders = Encoders(workshop.folder, workshop.run)
    how = ("--fp16", "--max-update", 3, *ONE_CHECKPOINT)
    trained(encoders.pretrain("diet-rel", tmp_path / "masked", *how), 1, 2, 3)
    begin = ("--restore-file", tmp_path / "masked" / "checkpoint_last.pt", *RESET)
    segments = ("--segment-encoding", "per-head", "--criterion", "diet_sentence_prediction")
    tuned = encoders.finetune("diet-rel", tmp_path / "pairs", *begin, *segments, *how)
    trained(tuned, 1, 2, 3)
    assert "valid_accuracy" in tuned.stdout


def test_diet_mt_trains_in_bfloat16(place: Path) -> None:
    """Validation with BLEU included."""
    more = ("--gpus", 1, "--precision", "auto", "--max-update", 5)
    printed = finish(start(*training("auto", *more), cwd=place, **SEEN))
    assert "1 x 1 GPUs, bf16, 2 x 400 tokens on each: 800 tokens for an update" in printed
    log = (place / "auto" / "train.log").read_text(encoding="utf-8")
    assert USED.search(log)
    assert re.search(r"\| bleu [\d.]+ .*\| num_updates 5\b", log)
    assert "--bf16" in (place / "auto" / "command").read_text(encoding="utf-8")
