"""Public reports of wrong or missing translations, tried with this package's models."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.decoding.generator import VARIABLE

from ..commands.workshop import BATCHES, IN_ONE, SEARCH, USER_DIR, Workshop, translations
from ..decoding.test_generator import generator
from ..models.test_search import talkative
from ..toy import EOS, PAD, build, collate, sources

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
def test_prefixes_of_unequal_length(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq #712: after a forced prefix all hypotheses of a sentence are the same.

    fairseq #3913: a hypothesis is shorter than its prefix.
    """
    monkeypatch.setenv(VARIABLE, which)
    prefix = torch.tensor([[5, 6, 7], [8, PAD, PAD], [9, 10, PAD], [11, 12, 13], [14, PAD, PAD]])
    actual = tokens_of(decode(talkative("t5", None), prefix=prefix))
    for row, hypotheses in zip(prefix, actual, strict=True):
        begin = row[row.ne(PAD)].tolist()
        assert all(one[: len(begin)] == begin and one[-1] == EOS for one in hypotheses)
        assert all(len(one) > len(begin) for one in hypotheses)
        assert len({tuple(one) for one in hypotheses}) == len(hypotheses) == 4


@both_searches
@pytest.mark.parametrize("size", [2, 3])
def test_no_repeated_ngrams(which: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq #5206: ``--no-repeat-ngram-size`` lets repetitions through."""
    monkeypatch.setenv(VARIABLE, which)
    model = build("diet-rel", seed=2).eval()  # loops, unless it is kept from it

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


@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs", "shaw"])
def test_alignments_stay_inside_the_source(encoding: str) -> None:
    """pytorch/translate #225: the word to be copied stands beyond the end of the source."""
    actual = decode(build(encoding).eval(), print_alignment="hard")
    for row, hypotheses in zip(ROWS, actual, strict=True):
        for one in hypotheses:
            assert all(0 <= source < len(row) for source, _ in one["alignment"])


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


def test_bleu_of_validation_is_that_of_decoding(workshop: Workshop) -> None:
    """fairseq #3245: BLEU of validation during training is not that of the same decoding later."""
    search = {"beam": 10, "lenpen": 0.6, "max_len_b": 30}
    model = ("--path", workshop.checkpoint("diet-rel"), *USER_DIR, *BATCHES, *IN_ONE)
    bleu = ("--eval-bleu", "--eval-bleu-args", json.dumps(search), "--log-format", "json")
    validated = workshop.run(
        "validate", workshop.bin, "--task", "translation", *model, *bleu, "--max-tokens", 400
    ).ok()
    (line,) = [each for each in validated.stdout.split("\n") if '"valid_bleu"' in each]
    actual = float(json.loads(line[line.index("{") :])["valid_bleu"])
    decoded = workshop.generate("diet-rel", "--gen-subset", "valid", "--scoring", "sacrebleu").ok()
    (line,) = [each for each in decoded.stdout.split("\n") if "BLEU = " in each]
    assert actual == pytest.approx(float(line.split("BLEU = ")[1].split()[0]), abs=0.01)
    assert actual > 10
