"""Our beam search and fairseq's: the same hypotheses in the same order with the same scores."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn

from diet_mt import kernels
from diet_mt.decoding import generator
from diet_mt.decoding.generator import BeamSearchGenerator, GnmtBeamSearchGenerator
from diet_mt.decoding.length_penalty import GnmtGenerator
from diet_mt.decoding.replay import Replays
from diet_mt.layers.fixed_run import PERIOD
from diet_mt.layers.slots import Store
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.system.errors import UserError

from ..models.test_search import ROUNDING, Hypotheses, search, talkative
from ..toy import PRE_NORM, build, collate, each_encoding, sources

LENGTHS = (7, 3, 5, 1, 6, 4, 11, 2)


def assert_the_same(ours: Hypotheses, theirs: Hypotheses, rounding: float = ROUNDING) -> None:
    assert len(ours) == len(theirs)
    for actual, expected in zip(ours, theirs, strict=True):
        assert [one["tokens"].tolist() for one in actual] == [
            one["tokens"].tolist() for one in expected
        ]
        for one, other in zip(actual, expected, strict=True):
            assert one.keys() == other.keys()
            for name in ("score", "positional_scores"):
                torch.testing.assert_close(
                    one[name].double(), other[name].double(), rtol=0, atol=rounding
                )


class Stale(Replays):
    """What replays have of a graph: the first step of its shape, with the memory that it had."""

    def __call__(self, key: Hashable, step: Any, *, again: bool) -> None:
        if self.store.moves != self._moves:
            self._discard()
            self._moves = self.store.moves
        if key in self._graphs:
            self._graphs[key]._step()
            return
        step()
        if again and self.store.moves == self._moves:
            self._graphs[key] = self._frozen(step.__self__)

    @staticmethod
    def _frozen(search: Any) -> Any:
        """As it is now, with the same tensors; it will see none that takes the place of one."""
        with pytest.MonkeyPatch.context() as patch:
            for kind in (Tensor, nn.Module, nn.Parameter, Store, Replays):
                patch.setattr(kind, "__deepcopy__", lambda self, memo: self, raising=False)
            return copy.deepcopy(search)


@contextmanager
def fixed(model: DietTransformerModel) -> Iterator[None]:
    """All is decoded in fixed shapes, and replayed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator, "Replays", Stale)
        patch.setattr(generator, "captures", lambda device: True)
        patch.setattr(generator, "BeamSearch", None)
        patch.setattr(model, "_is_generation_fast", True)
        yield


@contextmanager
def operators(model: DietTransformerModel) -> Iterator[None]:
    """With torch's operators."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "serve", lambda x: False)
        yield


# Our search: with kernels, with torch's operators, in fixed shapes.
WAYS = (nullcontext, operators, fixed)
any_way = pytest.mark.parametrize("way", WAYS, ids=["kernels", "operators", "fixed"])
ROOM = {"max_target_positions": 64}


def assert_parity(
    model: DietTransformerModel,
    source: Tensor | None = None,
    *,
    ways: Sequence[Any] = WAYS,
    kinds: tuple[Any, Any] = (SequenceGenerator, BeamSearchGenerator),
    **options: Any,
) -> Hypotheses:
    source = collate(sources(LENGTHS), "left") if source is None else source
    expected = search(kinds[0], model, source, **options)
    for way in ways:
        with way(model):
            assert_the_same(search(kinds[1], model, source, **options), expected)
    return expected


@each_encoding
def test_every_encoding(encoding: str, sharing: str | None) -> None:
    lengths = set[int]()
    for seed in range(1, 9):  # not every model ends its sentences at different lengths
        if seed > 2 and len(lengths) > 1:
            break
        actual = assert_parity(talkative(encoding, sharing, seed), ways=WAYS[:2])
        lengths |= {len(one["tokens"]) for hypotheses in actual for one in hypotheses}
    assert len(lengths) > 1


OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "wide beam": {"beam_size": 20},
    "unnormalized": {"normalize_scores": False},
    "long is good": {"len_penalty": 2.0},
    "shortest": {"max_len_b": 1},
    "only the end": {"max_len_b": 0, "min_len": 0},
    "by the source": {"max_len_a": 0.5, "max_len_b": 1},
    "may be empty": {"min_len": 0},
    "at least five": {"min_len": 5},
    "exactly five": {"min_len": 5, "max_len_b": 5},
    "no unknown words": {"unk_penalty": 100.0},
    "many unknown words": {"unk_penalty": -30.0},
    "suppressed words": {"tokens_to_suppress": ("word3", "word7")},
    "a period": {"max_len_b": PERIOD},
    "to the end of a period": {"max_len_b": PERIOD - 1},
    "one length": {"min_len": 18, "max_len_b": 18},
}


@pytest.mark.parametrize("name", OPTIONS, ids=lambda name: name.replace(" ", "-"))
def test_options(name: str) -> None:
    source = collate(sources(LENGTHS), "right")
    assert_parity(talkative("diet-rel", None, seed=3, **ROOM), source, **OPTIONS[name])


@pytest.mark.parametrize(("encoding", "changes"), [
    ("tupe-rel", {"position_in": "encoder", "position_input": "sinusoidal"}),
    ("diet-abs", {"position_in": "cross", "position_input": "learned"}),
    ("shaw", {"position_in": "encoder,decoder", "position_values": True}),
    ("rotary", {"position_in": "decoder"}),
    ("pope", {"position_layers": "::2"}),
    ("tupe-abs", {"position_layers": "1:"}),
    *((name, {"position_randomized": 100})
      for name in ("diet-rel", "diet-abs", "rotary", "shaw", "sinusoidal")),
    ("diet-rel", PRE_NORM),
    ("diet-rel", {"layernorm_embedding": True, "no_scale_embedding": True}),
    ("diet-rel", {"share_decoder_input_output_embed": True}),
], ids=str)  # fmt: skip
def test_other_models(encoding: str, changes: dict[str, Any]) -> None:
    assert_parity(talkative(encoding, None, 3, **ROOM, **changes))


@contextmanager
def threads(number: int) -> Iterator[None]:
    """torch has that many, and as many as before in the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
        assert torch.get_num_threads() == number
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("number", [2, 3, 100])
def test_a_batch_in_several_threads(number: int) -> None:
    """However the sentences are divided, and with the number of threads as it was before."""
    with threads(number):
        assert_parity(talkative("diet-abs", None), ways=WAYS[:2])


@pytest.mark.parametrize("rows", [slice(None), slice(3, 4)], ids=["beside others", "alone"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_source_of_padding_alone(side: str, rows: slice) -> None:
    model, source = talkative("diet-rel", None, **ROOM), collate(sources(LENGTHS), side)[rows]
    source[3 if len(source) > 3 else 0] = 1
    with threads(len(LENGTHS)):  # a search for each sentence
        assert_parity(model, source)


def test_lengths_that_exclude_each_other() -> None:
    model, source = talkative("diet-rel", None), collate(sources(LENGTHS))
    with pytest.raises(UserError, match=r"--min-len 9 .* 8 "):
        search(BeamSearchGenerator, model, source, min_len=9)


PREFIXES = {
    "two words": [[7, 11]] * len(LENGTHS),
    "some longer than others": [[7, 11, 12], [8, 1, 1], [9, 13, 1], [10, 11, 12]] * 2,
    "some without": [[7, 11], [1, 1]] * 4,
}


@pytest.mark.parametrize("name", PREFIXES, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("encoding", ["diet-rel", "rotary"])
def test_prefixes(encoding: str, name: str) -> None:
    prefix = torch.tensor(PREFIXES[name])
    model = talkative(encoding, None, seed=2)
    actual = assert_parity(model, ways=WAYS[:2], prefix=prefix, min_len=2)
    for hypotheses, words in zip(actual, PREFIXES[name], strict=True):
        given = [word for word in words if word != 1]
        assert all(one["tokens"][: len(given)].tolist() == given for one in hypotheses)


@pytest.mark.parametrize(("ended", "ways"), [(False, WAYS), (True, WAYS[:1])])
@pytest.mark.parametrize("kinds", [
    (SequenceGenerator, BeamSearchGenerator), (GnmtGenerator, GnmtBeamSearchGenerator)
])  # fmt: skip
def test_penalties_and_a_prefix_that_ends_the_sentence(kinds: Any, ended: bool, ways: Any) -> None:
    """fairseq's search takes over, and keeps the length penalty."""
    prefix = torch.tensor([[7, 2]] * len(LENGTHS)) if ended else None
    model = talkative("diet-rel", None, **ROOM)
    assert_parity(model, ways=ways, kinds=kinds, prefix=prefix, len_penalty=2.0)


@any_way
@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj", "out_proj"])
def test_scores_that_are_no_numbers_are_refused(name: str, way: Any) -> None:
    model = talkative("diet-rel", None, **ROOM)
    with torch.no_grad():
        getattr(model.decoder.layers[0].self_attn, name).weight[0, 0] = math.nan
    with way(model), pytest.raises(UserError, match="NaN"):
        search(BeamSearchGenerator, model, collate(sources(LENGTHS), "left"))


@torch.no_grad()
@pytest.mark.parametrize("broken", [math.inf, math.nan])
@pytest.mark.parametrize("encoding", ["none", "diet-rel", "shaw", "deberta"])
def test_a_word_without_finite_numbers_spoils_no_other_hypothesis(
    encoding: str, broken: float
) -> None:
    model, source = talkative(encoding, None, 3, **ROOM), collate(sources(LENGTHS), "left")
    before = search(BeamSearchGenerator, model, source)
    # A word that hypotheses have, but no best one.
    best = {word for hypotheses in before for word in hypotheses[0]["tokens"].tolist()}
    others = [word for all_of in before for one in all_of for word in one["tokens"].tolist()]
    low = next(word for word in others if word not in best)
    model.decoder.embed_tokens.weight[low] = broken
    actual = search(BeamSearchGenerator, model, source)
    for way in WAYS[1:]:
        with way(model):
            assert_the_same(search(BeamSearchGenerator, model, source), actual)
    assert any(low in one["tokens"].tolist()[:-2] for all_of in before for one in all_of)
    assert not any(low in one["tokens"].tolist()[:-2] for all_of in actual for one in all_of)


@pytest.mark.parametrize("changes", [PRE_NORM, {"share_decoder_input_output_embed": True}, {}])
def test_in_float32(changes: dict[str, Any]) -> None:
    model = build("diet-rel", tables=0.3, **changes).float().eval()
    source = collate(sources(LENGTHS), "left")
    ours = search(BeamSearchGenerator, model, source)
    assert_the_same(ours, search(SequenceGenerator, model, source), rounding=1e-5)


def test_a_beam_larger_than_what_can_be_said() -> None:
    """All 2 * 43 continuations of one step, and the vocabulary's padding among them nowhere."""
    model = build("diet-rel", tables=0.3).eval()
    actual = search(BeamSearchGenerator, model, collate(sources((5,))), beam_size=21, max_len_b=2)
    assert all(0 <= word < 44 for one in actual[0] for word in one["tokens"].tolist())


@pytest.mark.usefixtures("either_memory")
@pytest.mark.parametrize("kind", [BeamSearchGenerator, SequenceGenerator])
def test_a_batch_leaves_no_tensors_behind(kind: type[SequenceGenerator]) -> None:
    """Nor cycles of them, which stay until Python looks for cycles, batch upon batch."""
    model, source = talkative("diet-rel", None, 1), collate(sources(LENGTHS), "left")

    search(kind, model, source)
    gc.collect()
    gc.freeze()  # get_objects lists only later objects
    gc.disable()
    try:
        search(kind, model, source)
        assert not [each for each in gc.get_objects() if issubclass(type(each), Tensor)]
    finally:
        gc.enable()
        gc.unfreeze()
