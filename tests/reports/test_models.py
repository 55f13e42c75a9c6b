"""Public reports of wrong translations, positions and losses, tried with this package's models."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.decoding.generator import VARIABLE
from diet_mt.positions import CROSS, AttentionShape
from diet_mt.positions.t5 import T5Bias

from ..commands.workshop import SEARCH, USER_DIR, Workshop, translations
from ..decoding.test_generator import generator
from ..fairseq_patches.test_fast_paths import batch, criterion
from ..models.test_search import talkative
from ..toy import EOS, PAD, attention_positions, build, close, collate, sources

ROWS = sources((7, 3, 5, 1, 6))
# fairseq's search adds up float32 scores, down to about -40: steps of 4e-6.
ROUNDING = 2e-5

both_searches = pytest.mark.parametrize("which", ["own", "fairseq"])


def decode(models: Any, rows: Any = ROWS, prefix: Tensor | None = None, **options: Any) -> Any:
    """Hypotheses of the task's generator, as fairseq-generate builds it."""
    models = models if isinstance(models, list) else [models]
    built = generator(models, **{"max_len_b": 12} | options)
    source = collate(rows, "left")
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    return built.generate(models, sample, prefix_tokens=prefix)


def tokens_of(actual: Any) -> list[list[list[int]]]:
    return [[one["tokens"].tolist() for one in hypotheses] for hypotheses in actual]


@both_searches
@pytest.mark.parametrize("size", [2, 3])
def test_no_repeated_ngrams(which: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq #5206: ``--no-repeat-ngram-size`` lets repetitions through."""
    monkeypatch.setenv(VARIABLE, which)
    model = build("diet-rel", seed=2).eval()  # loops, unless it is changed

    def repeats(**options: Any) -> int:
        grams = [
            [tuple(one[at : at + size]) for at in range(len(one) - size + 1)]
            for hypotheses in tokens_of(decode(model, max_len_b=9, min_len=8, **options))
            for one in hypotheses
        ]
        return sum(len(each) - len(set(each)) for each in grams)

    assert repeats(no_repeat_ngram_size=size) == 0 < repeats()


@both_searches
def test_as_many_hypotheses_as_beams(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq #892: fewer hypotheses than ``--nbest`` and ``--beam`` ask for."""
    monkeypatch.setenv(VARIABLE, which)
    actual = tokens_of(decode(talkative("shaw", None), beam=12, nbest=12))
    assert [len({tuple(one) for one in hypotheses}) for hypotheses in actual] == [12] * len(ROWS)


def test_more_beams_than_words() -> None:
    """fairseq #395: ``--beam 1000`` gives nothing; 44 entries have 43 beams."""
    for hypotheses in decode(talkative("diet-rel", None), ROWS[:2], beam=1000, nbest=1000):
        assert all(math.isfinite(one["score"]) for one in hypotheses)
        assert len({tuple(one["tokens"].tolist()) for one in hypotheses}) == 43


@pytest.mark.parametrize("encoding", ["t5", "shaw", "linformer"])
def test_each_step_computes_one_query(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq #1686: every step of the search runs the decoder over the whole prefix."""
    monkeypatch.setenv(VARIABLE, "fairseq")
    model = talkative(encoding, None)
    lengths = set()

    def note(module: Any, given: Any) -> None:
        lengths.add(given[0].size(0))

    for layer in model.decoder.layers:
        layer.self_attn.register_forward_pre_hook(note)
    actual = tokens_of(decode(model))
    assert max(len(one) for hypotheses in actual for one in hypotheses) > 3
    assert lengths == {1}


@pytest.mark.parametrize("topp", [0.3, 0.7])
def test_sampling_stays_in_the_nucleus(topp: float) -> None:
    """fairseq #882: ``--sampling-topp`` draws words that are not among the most probable."""
    model = talkative("alibi", None)
    torch.manual_seed(3)
    drawn = 0
    actual = decode(model, sampling=True, sampling_topp=topp)
    for row, hypotheses in zip(ROWS, actual, strict=True):
        for one in hypotheses:
            *words, _ = one["tokens"].tolist()
            previous = torch.tensor([[EOS, *words]])
            shares = model(torch.tensor([row]), None, previous)[0].softmax(-1)[0]
            shares[:, PAD] = shares[0, EOS] = 0  # impossible; the end at first (--min-len)
            for word, share in zip(words, shares[:-1], strict=True):
                assert share[share > share[word]].sum() < topp + ROUNDING
                drawn += word != int(share.argmax())
    assert drawn, "something else than the most probable word"


def test_sampling_from_one_word_is_greedy() -> None:
    """mesh-transformer-jax #164: the top k are k + 1."""
    model = talkative("fire", None)
    drawn = decode(model, sampling=True, sampling_topk=1, beam=1)
    assert tokens_of(drawn) == tokens_of(decode(model, beam=1))


@both_searches
def test_half_precision_beside_padding(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers #17433: NaN for the shorter sentences of a batch padded on the left, in fp16."""
    monkeypatch.setenv(VARIABLE, which)
    model = talkative("t5", None).half()
    together = decode(model)
    for row, hypotheses in zip(ROWS, together, strict=True):
        assert all(math.isfinite(one["score"]) for one in hypotheses)
        (alone,) = decode(model, [row])
        assert alone[0]["tokens"].tolist() == hypotheses[0]["tokens"].tolist()


def test_every_line_of_the_input_has_a_translation(workshop: Workshop) -> None:
    """fairseq #1030: blank lines stop what ran before, or are passed over."""
    done = workshop.run(
        "interactive", workshop.bin, "--path", workshop.checkpoint("diet-rel"), *USER_DIR, *SEARCH,
        "--buffer-size", 3, stdin="bal der\n\n \t\nfim gol\n\n",
    ).ok()  # fmt: skip
    actual = translations(done.stdout)
    assert sorted(actual) == [0, 1, 2, 3, 4]
    assert actual[1] == actual[2] == actual[4]


def test_t5_in_cross_attention() -> None:
    """text-to-text-transfer-transformer #415: all source words behind position i are at distance 0.

    transformers #8518: cross-attention has a bias where T5 has none.
    """
    bias = T5Bias(AttentionShape(1, 2, 4, 400, 400, CROSS), "layer-wise", 8, 20)
    (table,) = bias.tables()
    values = table.get_parameter("by_bucket")
    with torch.no_grad():
        values.copy_(torch.arange(values.numel(), dtype=values.dtype).view_as(values))
    assert bias(range(3, 4), range(7))[0, 0, 0].tolist() == [2, 2, 1, 0, 5, 6, 6]
    model = build("t5", position_in="encoder,decoder")
    assert attention_positions(model, "cross") is None
    assert attention_positions(model, "decoder") is not None


def test_label_smoothing_by_hand() -> None:
    """fairseq #3182: the target gets eps / V on top of 1 - eps.

    label_smoothing: 1 - eps for the target, and eps for the others together.
    """
    model = build("diet-rel")
    made, sample = criterion(0.1), batch()
    made.padding_idx = PAD
    loss, size, logged = made(model, sample)
    logs = model(**sample["net_input"])[0].log_softmax(-1)
    others = logs.size(-1) - 1
    expected = logs.new_zeros(())
    for row, words in zip(logs, sample["target"], strict=True):
        for log, word in zip(row, words, strict=True):
            if word != PAD:
                expected -= 0.9 * log[word] + 0.1 * (log.sum() - log[word]) / others
    close(loss, expected)
    assert size == logged["ntokens"] == sample["target"].ne(PAD).sum()


@pytest.mark.parametrize("encoding", ["t5", "rotary", "alibi", "shaw"])
def test_positions_without_end_load_at_any_length(encoding: str) -> None:
    """transformers #8518: relative positions have no longest sentence to be of one size with."""
    longer = build(encoding, max_source_positions=40, max_target_positions=40, seed=2)
    longer.load_state_dict(build(encoding).state_dict())
