"""Our beam search and fairseq's: the same hypotheses in the same order with the same scores."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from diet_mt import kernels
from diet_mt.decoding.generator import BeamSearchGenerator, GnmtBeamSearchGenerator
from diet_mt.decoding.length_penalty import GnmtGenerator
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.system.errors import UserError

from ..models.test_search import Hypotheses, talkative
from ..toy import PRE_NORM, ToyTask, build, collate, each_encoding, sources

LENGTHS = (7, 3, 5, 1, 6, 4, 11, 2)
# fairseq's search adds up float32 scores, down to about -40: steps of 4e-6.
ROUNDING = 2e-5


def search(
    kind: type[SequenceGenerator],
    model: DietTransformerModel,
    source: Tensor,
    prefix: Tensor | None = None,
    **options: Any,
) -> Hypotheses:
    settings = {"beam_size": 4, "max_len_b": 8, "len_penalty": 0.6} | options
    generator = kind([model], ToyTask().target_dictionary, **settings)
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(1)}}
    actual: Hypotheses = generator.generate([model], sample, prefix_tokens=prefix)
    return actual


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


def assert_parity(model: DietTransformerModel, side: str = "left", **options: Any) -> Hypotheses:
    source = collate(sources(LENGTHS), side)
    ours = search(BeamSearchGenerator, model, source, **options)
    assert_the_same(ours, search(SequenceGenerator, model, source, **options))
    return ours


@pytest.mark.usefixtures("either_memory")
@each_encoding
def test_every_encoding(encoding: str, sharing: str | None) -> None:
    lengths = set[int]()
    for seed in range(1, 9):  # not every model ends its sentences at different lengths
        if seed > 2 and len(lengths) > 1:
            break
        actual = assert_parity(talkative(encoding, sharing, seed))
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
}


@pytest.mark.parametrize("name", OPTIONS, ids=lambda name: name.replace(" ", "-"))
def test_options(name: str) -> None:
    assert_parity(talkative("diet-rel", None, seed=3), "right", **OPTIONS[name])


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
        assert_parity(talkative("diet-abs", None))


@pytest.mark.parametrize("rows", [slice(None), slice(3, 4)], ids=["beside others", "alone"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_source_of_padding_alone(side: str, rows: slice) -> None:
    model, source = talkative("diet-rel", None), collate(sources(LENGTHS), side)[rows]
    source[3 if len(source) > 3 else 0] = 1
    with threads(len(LENGTHS)):  # a search for each sentence
        ours = search(BeamSearchGenerator, model, source)
    assert_the_same(ours, search(SequenceGenerator, model, source))


def test_lengths_that_exclude_each_other() -> None:
    with pytest.raises(UserError, match=r"--min-len 9 .* 8 "):
        assert_parity(talkative("diet-rel", None), min_len=9)


PREFIXES = {
    "two words": [[7, 11]] * len(LENGTHS),
    "some longer than others": [[7, 11, 12], [8, 1, 1], [9, 13, 1], [10, 11, 12]] * 2,
    "some without": [[7, 11], [1, 1]] * 4,
}


@pytest.mark.parametrize("name", PREFIXES, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("encoding", ["diet-rel", "rotary"])
def test_prefixes(encoding: str, name: str) -> None:
    prefix = torch.tensor(PREFIXES[name])
    actual = assert_parity(talkative(encoding, None, seed=2), prefix=prefix, min_len=2)
    for hypotheses, words in zip(actual, PREFIXES[name], strict=True):
        given = [word for word in words if word != 1]
        assert all(one["tokens"][: len(given)].tolist() == given for one in hypotheses)


@pytest.mark.parametrize(
    ("own", "other"),
    [(BeamSearchGenerator, SequenceGenerator), (GnmtBeamSearchGenerator, GnmtGenerator)],
)
@pytest.mark.parametrize("prefix", [None, [[7, 2]] * len(LENGTHS)], ids=["free", "ended"])
def test_a_prefix_that_ends_the_sentence(own: Any, other: Any, prefix: Any) -> None:
    """fairseq's search takes over, and keeps the length penalty."""
    model, source = talkative("diet-rel", None), collate(sources(LENGTHS), "left")
    given = None if prefix is None else torch.tensor(prefix)
    ours, theirs = (search(kind, model, source, given, len_penalty=2.0) for kind in (own, other))
    assert_the_same(ours, theirs)


@pytest.mark.parametrize("changes", [PRE_NORM, {"share_decoder_input_output_embed": True}, {}])
def test_in_float32(changes: dict[str, Any]) -> None:
    model = build("diet-rel", tables=0.3, **changes).float().eval()
    source = collate(sources(LENGTHS), "left")
    ours = search(BeamSearchGenerator, model, source)
    assert_the_same(ours, search(SequenceGenerator, model, source), rounding=1e-5)


@pytest.mark.usefixtures("either_memory")
def test_scores_that_are_no_numbers_are_refused() -> None:
    model = talkative("diet-rel", None)
    with torch.no_grad():
        model.decoder.layers[0].self_attn.v_proj.weight[0, 0] = float("nan")
    with pytest.raises(UserError, match="NaN"):
        search(BeamSearchGenerator, model, collate(sources(LENGTHS), "left"))


@torch.no_grad()
@pytest.mark.parametrize(
    ("encoding", "broken"),
    [("none", math.inf), ("diet-rel", math.nan), ("shaw", math.inf), ("deberta", math.nan)],
)
def test_a_word_without_finite_numbers_spoils_no_other_hypothesis(
    encoding: str, broken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = talkative(encoding, None, seed=3), collate(sources(LENGTHS), "left")
    before = search(BeamSearchGenerator, model, source)
    # A word that hypotheses have, but no best one.
    best = {word for hypotheses in before for word in hypotheses[0]["tokens"].tolist()}
    others = [word for all_of in before for one in all_of for word in one["tokens"].tolist()]
    low = next(word for word in others if word not in best)
    model.decoder.embed_tokens.weight[low] = broken
    actual = search(BeamSearchGenerator, model, source)
    monkeypatch.setattr(kernels, "serve", lambda x: False)
    assert_the_same(search(BeamSearchGenerator, model, source), actual)
    assert any(low in one["tokens"].tolist()[:-2] for all_of in before for one in all_of)
    assert not any(low in one["tokens"].tolist()[:-2] for all_of in actual for one in all_of)


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
