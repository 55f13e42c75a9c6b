"""The search in fixed shapes: the hypotheses of the other one, and no step that waits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from diet_mt.decoding import candidates, fixed_search
from diet_mt.decoding.fixed_search import filled_up
from diet_mt.decoding.generator import BeamSearchGenerator
from diet_mt.layers.fixed_run import PERIOD
from diet_mt.layers.slots import Store
from diet_mt.models.diet_transformer import DietTransformerModel

from ..models.test_search import Hypotheses, talkative
from ..toy import ToyTask, collate, each_encoding, sources
from .test_parity import ROOM, assert_the_same, fixed

# So many that some leave before the last is done; and more steps than two periods have.
LENGTHS = tuple(1 + 7 * number % 11 for number in range(40))
LONGEST = 2 * PERIOD + 3


def generate(kind: Any, model: DietTransformerModel, *batches: Tensor, **more: Any) -> Hypotheses:
    """The hypotheses of the sentences of all ``batches``, which are decoded in turn."""
    settings = {"beam_size": 4, "max_len_b": LONGEST, "len_penalty": 0.6} | more
    made = kind([model], ToyTask().target_dictionary, **settings)
    samples = [{"net_input": {"src_tokens": each}} for each in batches]
    return [actual for each in samples for actual in made.generate([model], each)]


def assert_equal(model: DietTransformerModel, *batches: Tensor, **more: Any) -> Hypotheses:
    expected = generate(BeamSearchGenerator, model, *batches, **more)
    with fixed(model):
        actual = generate(BeamSearchGenerator, model, *batches, **more)
    assert_the_same(actual, expected)
    return actual


@each_encoding
def test_every_encoding(encoding: str, sharing: str | None) -> None:
    """And then batches of the same and of another size in the same memory."""
    rows = sources(LENGTHS[:7])
    batches = collate(rows, "left"), collate(rows[1:6], "right"), collate(rows[2:5])
    for seed in range(1, 9):  # not every model has sentences longer than a period
        sentences = assert_equal(talkative(encoding, sharing, seed, **ROOM), *batches)
        if max(len(one["tokens"]) for own in sentences for one in own) > PERIOD:
            return
    pytest.fail("all sentences are short")


def test_sentences_that_are_done_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, own = [], fixed_search.FixedSearch._step

    def step(self: Any, last: bool = False) -> None:
        sizes.append(self._words.size(0))
        own(self, last)

    monkeypatch.setattr(fixed_search.FixedSearch, "_step", step)
    batches = [collate(sources(LENGTHS, seed)) for seed in (3, 4)]
    assert_equal(talkative("diet-rel", None, **ROOM), *batches, max_len_b=50)
    assert set(sizes) == {40, 16}


@torch.no_grad()
def test_weights_that_change_between_batches() -> None:
    """In their place, as training changes them, or into other precision, as ``model.half()``."""
    model, batch = talkative("diet-rel", None, 3, **ROOM), collate(sources(LENGTHS[:5]))
    made = BeamSearchGenerator([model], ToyTask().target_dictionary, beam_size=4, max_len_b=9)
    sample = {"net_input": {"src_tokens": batch}}
    for change in (
        lambda: model.decoder.layers[1].self_attn.q_proj.weight.mul_(-2.0),
        lambda: model.decoder.output_projection.weight.mul_(0.5),
        lambda: model.float(),
    ):
        with fixed(model):
            made.generate([model], sample)
        change()
        expected = made.generate([model], sample)
        with fixed(model):
            assert_the_same(made.generate([model], sample), expected)


@pytest.mark.parametrize("search", [fixed, nullcontext])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_finite_scores_in_order(dtype: torch.dtype, search: Any) -> None:
    """All searches round in other places, so their hypotheses need not be the same."""
    model = talkative("diet-abs", None, **ROOM).to(dtype)
    with search(model):
        actual = generate(BeamSearchGenerator, model, collate(sources(LENGTHS[:9])))
    for hypotheses in actual:
        scores = [float(one["score"]) for one in hypotheses]
        assert all(map(math.isfinite, scores))
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("changes", [
    {"no_repeat_ngram_size": 2},
    {"max_len_b": 12},
], ids=str)  # fmt: skip
def test_what_the_other_search_does(changes: dict[str, Any]) -> None:
    """n-grams, and tokens beyond the tables."""
    model = talkative("diet-rel", None, beyond_table="clip")
    with fixed(model), pytest.raises(TypeError, match="NoneType"):
        generate(BeamSearchGenerator, model, collate(sources(LENGTHS[:3])), **changes)


class Step(TorchDispatchMode):
    """What a step does that no graph can replay: operators that make Python wait for a device, or
    give it shapes that it must ask for; and tensors from outside of ``known`` storages, which a
    graph would read at addresses that others have by then.
    """

    NAMES = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "unique", "masked_select")

    def __init__(self, known: Iterable[Tensor]) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.outside: list[str] = []
        self.all = 0
        self._made: list[Any] = []  # held, so that nothing else gets their addresses
        self._known = {address(each) for each in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.all += 1
        name = func.overloadpacket._qualified_op_name.removeprefix("aten::")
        booleans = name == "index" and any(
            each is not None and each.dtype == torch.bool for each in args[1]
        )
        new = name in ("lift_fresh", "_to_copy") and args[0].device != (kwargs or {}).get(
            "device", args[0].device
        )
        if name in self.NAMES or booleans or new:
            self.waits.append(name)
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        if name != "lift_fresh":  # a number of Python's
            self.outside += [name for each in given if address(each) not in self._known]
        actual = func(*args, **(kwargs or {}))
        for each in tree_leaves(actual):
            if isinstance(each, Tensor):
                self._made.append(each)
                self._known.add(address(each))
        return actual


def address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@each_encoding
def test_a_step_can_be_replayed(encoding: str, sharing: str | None, monkeypatch: Any) -> None:
    """None but the first takes memory in the store, and all are the same operators."""
    model, own, counted = talkative(encoding, sharing, **ROOM), fixed_search.FixedSearch._step, []

    def step(self: Any, last: bool = False) -> None:
        store = self._replays.store
        moves = store.moves
        with Step([*store.tensors(), *model.parameters(), *model.buffers()]) as did:
            own(self, last)
        assert not did.waits
        counted.append((did.all, store.moves - moves, did.outside))

    monkeypatch.setattr(fixed_search.FixedSearch, "_step", step)
    # As on a GPU; some CPUs multiply into memory that is not in the store.
    monkeypatch.setattr(candidates, "one_dnn_is_faster", lambda: True)
    with fixed(model):
        batch, lengths = collate(sources(LENGTHS[:2])), {"min_len": PERIOD, "max_len_b": PERIOD + 2}
        generate(BeamSearchGenerator, model, batch, **lengths)
    assert len(counted) > PERIOD
    assert len({operators for operators, *_ in counted[1:-1]}) == 1
    assert [(moves, outside) for _, moves, outside in counted[1:] if moves or outside] == []


def test_batches_are_filled_up() -> None:
    rows = {1: 1, 3: 4, 16: 16, 17: 18, 33: 36, 64: 64, 65: 72, 500: 512, 520: 576}
    assert {sentences: filled_up(sentences) for sentences in rows} == rows


def test_a_store_moves_what_grows() -> None:
    store = Store(torch.device("cpu"))
    first = store.put("a", torch.ones(2, 3))
    again = store.put("a", torch.zeros(3, 2))
    assert first.data_ptr() == again.data_ptr()
    assert store.moves == 1
    assert store.put("a", torch.ones(7)).data_ptr() != first.data_ptr()
    assert store.put("a", torch.ones(7, dtype=torch.long)).dtype == torch.long
    assert store.moves == 3
