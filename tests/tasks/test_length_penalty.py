"""The two length penalties, on a model whose every probability is known and on real ones."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGeneratorWithAlignment
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor, nn

from diet_mt.system.errors import UserError
from diet_mt.tasks.diet_translation import DietTranslationConfig, DietTranslationTask

from ..models.test_search import LENGTHS, talkative
from ..toy import EOS, FIRST_WORD, PAD, collate, dictionary, sources

A, B = FIRST_WORD, FIRST_WORD + 1
SHORT, LONG = [A, EOS], [B, B, B, B, EOS]
# Probabilities of what follows; what is missing to 1 goes to padding, which search never takes.
SCRIPT = {
    (): {A: 0.5, B: 0.5},
    (A,): {EOS: 0.75},
    (B,): {B: 0.8},
    (B, B): {B: 0.8},
    (B, B, B): {B: 0.8},
    (B, B, B, B): {EOS: 0.9},
}
SEARCH = {"beam": 2, "lenpen": 0.6, "max_len_b": 8}


class Scripted(nn.Module):
    """Says what SCRIPT says, whatever the source is."""

    def forward(self, tokens: Tensor) -> tuple[Tensor, None]:
        """(B, T) -> probabilities of the next word, (B, 1, vocabulary)."""
        actual = torch.zeros(len(tokens), 1, len(dictionary(2)))
        for row, (_, *words) in zip(actual, tokens.tolist(), strict=True):
            following = SCRIPT.get(tuple(words), {EOS: 1.0})
            for word, probability in following.items():
                row[0, word] = probability
            row[0, PAD] = 1 - sum(following.values())
        return actual, None

    def get_normalized_probs(self, output: Any, **_: Any) -> Tensor:
        return output[0].log()


def task(penalty: str | None, words: int = 2) -> TranslationTask:
    """The task with a penalty; None: fairseq's own."""
    symbols = dictionary(words)
    if penalty is None:
        return TranslationTask(TranslationConfig(), symbols, symbols)
    return DietTranslationTask(DietTranslationConfig(length_penalty=penalty), symbols, symbols)


def decode(penalty: str | None, **options: Any) -> list[dict[str, Any]]:
    """The hypotheses of one sentence, best first."""
    model = Scripted()
    generator = task(penalty).build_generator([model], Namespace(**SEARCH | options))
    sample = {"net_input": {"src_tokens": torch.tensor([[A, EOS]])}}
    (actual,) = generator.generate([model], sample)
    return actual


def outcome(actual: list[dict[str, Any]]) -> list[tuple[list[int], float]]:
    return [(one["tokens"].tolist(), round(float(one["score"]), 4)) for one in actual]


def test_each_penalty_has_its_own_winner() -> None:
    """By hand: ln 0.375 = -0.98083 over 2 subwords, ln 0.2304 = -1.46794 over 5.

    2^0.6 = 1.51572, 5^0.6 = 2.62653; (7/6)^0.6 = 1.09691, (10/6)^0.6 = 1.35867.
    """
    assert outcome(decode("fairseq")) == [(LONG, -0.5589), (SHORT, -0.6471)]
    assert outcome(decode("gnmt")) == [(SHORT, -0.8942), (LONG, -1.0804)]


@pytest.mark.parametrize("options", [{"unnormalized": True}, {"lenpen": 0.0}])
def test_nothing_is_divided_where_nothing_should_be(options: dict[str, Any]) -> None:
    expected = [(SHORT, -0.9808), (LONG, -1.4679)]
    assert outcome(decode("gnmt", **options)) == outcome(decode(None, **options)) == expected


def search(model: Any, rows: list[list[int]], penalty: str | None, **options: Any) -> Any:
    settings = {"beam": 4, "lenpen": 0.6, "max_len_b": 8} | options
    generator = task(penalty, words=40).build_generator([model], Namespace(**settings))
    source = collate(rows, "left")
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    return generator.generate([model], sample)


@torch.no_grad()
def test_alignments_are_those_of_fairseqs_search() -> None:
    model, rows = talkative("diet-rel", None), sources(LENGTHS)
    actual = search(model, rows, "gnmt", print_alignment="hard")
    plain = search(model, rows, "gnmt")
    theirs = search(model, rows, None, print_alignment="hard")
    assert any(one["alignment"] for hypotheses in theirs for one in hypotheses)
    for ours, bare, same in zip(actual, plain, theirs, strict=True):
        assert outcome(ours) == outcome(bare)
        aligned = {tuple(one["tokens"].tolist()): one["alignment"] for one in same}
        for one in ours:
            assert one["alignment"] == aligned[tuple(one["tokens"].tolist())]


@pytest.mark.parametrize(
    ("options", "given", "complaint"),
    [
        ({"score_reference": True}, {}, "--score-reference"),
        ({}, {"seq_gen_cls": SequenceGeneratorWithAlignment}, "not for SequenceGeneratorWithAlign"),
    ],
)
def test_what_would_lose_the_penalty_is_refused(
    options: dict[str, Any], given: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        task("gnmt").build_generator([Scripted()], Namespace(**SEARCH | options), **given)
    task("fairseq").build_generator([Scripted()], Namespace(**SEARCH | options), **given)
