"""fairseq's own beam search over our models: its scores are those of a full pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from diet_mt.models.diet_transformer import DietTransformerModel

from ..toy import (
    EOS,
    ToyTask,
    build,
    collate,
    each_encoding,
    each_kind,
    name_of,
    sources,
)

BEAM = 4
LENGTHS = (7, 3, 5, 1, 6)
# fairseq's search adds up float32 scores, down to about -40: steps of 4e-6.
ROUNDING = 2e-5

Hypotheses = list[list[dict[str, Any]]]


def talkative(
    encoding: str, sharing: str | None, seed: int = 1, **changes: Any
) -> DietTransformerModel:
    """A model with strong opinions whose sentences end at different lengths."""
    model = build(encoding, sharing, seed=seed, **changes).eval()
    with torch.no_grad():
        words = model.decoder.output_projection.weight
        words.mul_(3.0)
        # The end mark gets 2.5 more than any other word, give or take what the features say.
        model.decoder.layers[-1].final_layer_norm.bias[0] = 1.0
        words[:, 0] = 0.0
        words[EOS, 0] = 2.5
    return model


def search(
    kind: type[SequenceGenerator],
    models: Any,
    source: Tensor,
    prefix: Tensor | None = None,
    **options: Any,
) -> Hypotheses:
    """By one model, or a list of them."""
    models = models if isinstance(models, list) else [models]
    settings = {"beam_size": BEAM, "max_len_b": 8, "len_penalty": 0.6} | options
    made = kind(models, ToyTask().target_dictionary, **settings)
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(1)}}
    actual: Hypotheses = made.generate(models, sample, prefix_tokens=prefix)
    return actual


def rescored(models: list[DietTransformerModel], source: list[int], tokens: Tensor) -> Tensor:
    """Log-probability of each of ``tokens``, the mean over the models, in one pass."""
    previous = torch.cat([torch.tensor([EOS]), tokens[:-1]])[None]
    shares = [model(torch.tensor([source]), None, previous)[0].softmax(-1)[0] for model in models]
    mean = sum(shares) / len(models)
    return mean.log().gather(1, tokens[:, None])[:, 0]


def assert_scores_are_those_of_a_full_pass(
    models: list[DietTransformerModel], rows: list[list[int]], actual: Hypotheses
) -> None:
    for row, hypotheses in zip(rows, actual, strict=True):
        assert len(hypotheses) == BEAM
        for hypothesis in hypotheses:
            expected = rescored(models, row, hypothesis["tokens"])
            torch.testing.assert_close(
                hypothesis["positional_scores"].double(), expected, rtol=0, atol=ROUNDING
            )


@torch.no_grad()
@each_encoding
def test_scores_of_hypotheses_are_those_of_a_full_pass(encoding: str, sharing: str | None) -> None:
    rows = sources(LENGTHS)
    for seed in range(1, 9):  # not every model ends its sentences at different lengths
        model = talkative(encoding, sharing, seed)
        actual = search(SequenceGenerator, model, collate(rows, "left"))
        lengths = {len(hypothesis["tokens"]) for hypotheses in actual for hypothesis in hypotheses}
        if len(lengths) > 2:
            break
    assert len(lengths) > 2, "sentences that are finished must leave the batch at different steps"
    assert_scores_are_those_of_a_full_pass([model], rows, actual)


@torch.no_grad()
@pytest.mark.parametrize(
    "members",
    [
        [("diet-rel", "none"), ("diet-abs", "layer-wise")],
        [("sinusoidal", None), ("none", None)],
        [("rotary", None), ("shaw", "head-wise"), ("linformer", "none")],
    ],
    ids=lambda members: "+".join(name_of(*member) for member in members),
)
def test_ensembles(members: list[tuple[str, str | None]]) -> None:
    models = [talkative(*member, seed=seed) for seed, member in enumerate(members)]
    rows = sources(LENGTHS)
    actual = search(SequenceGenerator, models, collate(rows, "left"))
    assert_scores_are_those_of_a_full_pass(models, rows, actual)


@torch.no_grad()
@each_kind
def test_generation_stops_at_the_longest_position(encoding: str, sharing: str | None) -> None:
    """n_T = 10 and a wish for 200: the sentence is ended, no table is overrun."""
    model = build(encoding, sharing).eval()
    model.decoder.output_projection.weight[EOS] = 0.0
    model.decoder.output_projection.weight[5] *= 20  # a word that always pays more than the end
    source = collate(sources((11, 4)), "left")
    for hypotheses in search(SequenceGenerator, model, source, max_len_b=200, min_len=9):
        assert [len(hypothesis["tokens"]) for hypothesis in hypotheses] == [10] * BEAM
