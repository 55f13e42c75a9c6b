"""Small encoder-only models, and sentences with segments, beside those of ``toy.py``.

Sizes are uneven here, too: B 5, H 3, S 7, D 4, E 12, L 2, n 11 and N 6 segments.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.positions import SegmentInput, SegmentPositions

from .toy import (
    BOS,
    CASES,
    KINDS_OF_ENCODING,
    ONE_EACH,
    OPTIONS,
    SIZES,
    SOURCE_LENGTHS,
    ToyTask,
    collate,
    encoding_of,
    name_of,
    parameters_of,
    position_parameters,
    sources,
)

SEGMENTS = 6
SENTENCE_SIZES: dict[str, Any] = {
    **{name: size for name, size in SIZES.items() if name.startswith("encoder_")},
    "max_source_positions": SIZES["max_source_positions"],
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "num_segments": SEGMENTS,
    "activation_fn": "relu",  # fairseq's gelu rounds to float32
}


def options(encoding: str, sharing: str | None, segments: str, **changes: Any) -> Namespace:
    """Options as they come from the command line."""
    place = {"position_encoding": encoding_of(encoding), "position_sharing": sharing}
    own = {**place, "segment_encoding": segments}
    return Namespace(**{**SENTENCE_SIZES, **OPTIONS.get(encoding, {}), **own, **changes})


def build(
    encoding: str,
    sharing: str | None = None,
    segments: str = "none",
    *,
    seed: int = 1,
    tables: float | None = 0.7,
    **changes: Any,
) -> DietRobertaModel:
    """A float64 model in training mode, without dropout.

    ``tables``: standard deviation of the entries of all tables of positions and segments, large
    enough to be seen in every output; None leaves the initial values.
    """
    torch.manual_seed(seed)
    given = options(encoding, sharing, segments, **changes)
    model = DietRobertaModel.build_model(given, ToyTask())
    if tables is not None:
        for table in (position_parameters(model) | segment_parameters(model)).values():
            nn.init.normal_(table, std=tables)
    return model.double()


def segment_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of segments in ``model``, by their full names."""
    return parameters_of(model, SegmentInput, SegmentPositions)


# Keys of no single token have no segment: these take segments at the input.
MIXED = ("linformer", "diet-abs-lin")
# Beside one case per encoding: an encoding at the input, one in the logits, one by factors and one
# with mixed keys, with the other ways of segments; and [CLS], which TUPE unties.
OTHERS: list[tuple[str, str | None, str]] = [
    ("learned", None, "input"),
    ("diet-rel", "none", "input"),
    ("diet-abs", "layer-wise", "input"),
    ("learned", None, "none"),
    ("tupe-abs", "head-wise", "none"),
    ("linformer", "head-wise", "none"),
]


def _cases(chosen: list[tuple[str, str | None]]) -> pytest.MarkDecorator:
    with_segments = [(*case, "input" if case[0] in MIXED else "per-head") for case in chosen]
    params = [
        pytest.param(encoding, sharing, segments, id=f"{name_of(encoding, sharing)}+{segments}")
        for encoding, sharing, segments in [*with_segments, *OTHERS]
    ]
    return pytest.mark.parametrize(("encoding", "sharing", "segments"), params)


# They give a test the arguments ``encoding``, ``sharing`` and ``segments``: where it matters which
# table a layer and a head read, where it does not, and where one of each kind would fail as well.
every_sentence_encoder, each_sentence_encoder = _cases(CASES), _cases(ONE_EACH)
each_kind = _cases([case for case in ONE_EACH if case[0] in KINDS_OF_ENCODING])


def rows() -> list[list[int]]:
    """Sentences of ``SOURCE_LENGTHS`` tokens, the first of them [CLS]."""
    return [[BOS, *row[1:]] if len(row) > 1 else row for row in sources()]


def segments_of_rows() -> list[list[int]]:
    """A segment for each token of :func:`rows`, in no order, every one of ``SEGMENTS`` occurs."""
    generator = torch.Generator().manual_seed(5)
    drawn = [torch.randint(SEGMENTS, (n,), generator=generator).tolist() for n in SOURCE_LENGTHS]
    assert len({segment for row in drawn for segment in row}) == SEGMENTS
    return drawn


def batch(side: str = "right", width: int | None = None) -> dict[str, Tensor]:
    """The arguments of a model for :func:`rows`. Segments at padding are other than 0."""
    tokens = collate(rows(), side, width)
    segments = collate(segments_of_rows(), side, width)
    padding = tokens.eq(1)
    segments[padding] = torch.arange(int(padding.sum())) % SEGMENTS
    return {"src_tokens": tokens, "segment_ids": segments}
