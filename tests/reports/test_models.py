"""Reported bugs of other toolkits in search, positions and losses, tested with our models."""

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
from ..toy import PAD, attention_positions, build, close, collate, sources

ROWS = sources((7, 3, 5, 1, 6))

both_searches = pytest.mark.parametrize("which", ["own", "fairseq"])


def decode(models: Any, rows: Any = ROWS, prefix: Tensor | None = None, **options: Any) -> Any:
    """Hypotheses by the generator that the task builds for fairseq-generate."""
    models = models if isinstance(models, list) else [models]
    built = generator(models, **{"max_len_b": 12} | options)
    source = collate(rows, "left")
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    return built.generate(models, sample, prefix_tokens=prefix)


def tokens_of(decoded: Any) -> list[list[list[int]]]:
    return [[one["tokens"].tolist() for one in hypotheses] for hypotheses in decoded]


@both_searches
@pytest.mark.parametrize("size", [2, 3])
def test_no_repeated_ngrams(which: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq #5206: repetitions in spite of ``--no-repeat-ngram-size``."""
    monkeypatch.setenv(VARIABLE, which)
    model = build("diet-rel", seed=2).eval()  # repeats n-grams without the option

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
    """fairseq #892: fewer hypotheses than ``--nbest`` and ``--beam``."""
    monkeypatch.setenv(VARIABLE, which)
    actual = tokens_of(decode(talkative("shaw", None), beam=12, nbest=12))
    assert [len({tuple(one) for one in hypotheses}) for hypotheses in actual] == [12] * len(ROWS)


def test_more_beams_than_words() -> None:
    """fairseq #395: ``--beam 1000`` gives no hypotheses. With 44 entries there are 43 beams."""
    for hypotheses in decode(talkative("diet-rel", None), ROWS[:2], beam=1000, nbest=1000):
        assert all(math.isfinite(one["score"]) for one in hypotheses)
        assert len({tuple(one["tokens"].tolist()) for one in hypotheses}) == 43


@pytest.mark.parametrize("encoding", ["t5", "shaw", "linformer"])
def test_each_step_computes_one_query(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq #1686: each step of the search runs the decoder over the whole prefix."""
    monkeypatch.setenv(VARIABLE, "fairseq")
    model = talkative(encoding, None)
    lengths = set()

    def add_length(module: Any, inputs: Any) -> None:
        lengths.add(inputs[0].size(0))

    for layer in model.decoder.layers:
        layer.self_attn.register_forward_pre_hook(add_length)
    actual = tokens_of(decode(model))
    assert max(len(one) for hypotheses in actual for one in hypotheses) > 3
    assert lengths == {1}


@both_searches
def test_half_precision_with_padding(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers #17433: NaN in fp16 for the shorter sentences of a left-padded batch."""
    monkeypatch.setenv(VARIABLE, which)
    model = talkative("t5", None).half()
    together = decode(model)
    for row, hypotheses in zip(ROWS, together, strict=True):
        assert all(math.isfinite(one["score"]) for one in hypotheses)
        (alone,) = decode(model, [row])
        assert alone[0]["tokens"].tolist() == hypotheses[0]["tokens"].tolist()


def test_every_line_of_the_input_has_a_translation(workshop: Workshop) -> None:
    """fairseq #1030: a blank line ends the command, or has no translation."""
    done = workshop.run(
        "interactive", workshop.bin, "--path", workshop.checkpoint("diet-rel"), *USER_DIR, *SEARCH,
        "--buffer-size", 3, stdin="bal der\n\n \t\nfim gol\n\n",
    ).ok()  # fmt: skip
    actual = translations(done.stdout)
    assert sorted(actual) == [0, 1, 2, 3, 4]
    assert actual[1] == actual[2] == actual[4]


def test_t5_in_cross_attention() -> None:
    """text-to-text-transfer-transformer #415: distance 0 for all source words behind position i.

    transformers #8518: a bias in cross-attention, where T5 has none.
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
    """fairseq #3182: the target has weight 1 - eps + eps / V.

    With ``--label-smoothing``: 1 - eps for the target, and eps for all other words together.
    """
    model = build("diet-rel")
    smoothed, sample = criterion(0.1), batch()
    smoothed.padding_idx = PAD
    loss, size, logged = smoothed(model, sample)
    logs = model(**sample["net_input"])[0].log_softmax(-1)
    others = logs.size(-1) - 1
    expected = logs.new_zeros(())
    for row, words in zip(logs, sample["target"], strict=True):
        for log, word in zip(row, words, strict=True):
            if word != PAD:
                expected -= 0.9 * log[word] + 0.1 * (log.sum() - log[word]) / others
    close(loss, expected)
    assert size == logged["ntokens"] == sample["target"].ne(PAD).sum()
