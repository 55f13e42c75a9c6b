"""Parameters of the encoders of Chen et al. 2021, table 6, counted on our models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch._subclasses.fake_tensor import FakeTensorMode

from ..blocks import Grid, markdown_table
from .encoders import SHAW, make_roberta

# Entries of the dictionary, fairseq's marks included: BERT's uncased vocabulary, and the 120,000
# pieces of section 4.3.
VOCABULARIES = {"English": 30522, "multilingual": 120000}


@dataclass(frozen=True)
class EncoderRow:
    """A line of the table: its model, and the millions of parameters that the paper prints."""

    label: str
    encoding: str
    printed: tuple[float, float]  # by vocabulary
    segments: str = "per-head"
    options: Mapping[str, Any] = field(default_factory=dict)


ROWS = (
    EncoderRow("Devlin et al. (2018)", "learned", (110.1, 178.9), "input"),
    EncoderRow("Shaw et al. (2018)", "shaw", (112.9, 181.7), "input", SHAW),
    EncoderRow("DIET-REL", "diet_rel", (109.9, 178.7)),
    EncoderRow(
        "DIET-REL (share)", "diet_rel", (109.7, 178.5), options={"position_sharing": "layer-wise"}
    ),
    EncoderRow(
        "DIET-ABS (rank 128)", "diet_abs", (128.6, 197.4), options={"position_sharing": "none"}
    ),
    EncoderRow("DIET-ABS (rank 128, share)", "diet_abs", (111.3, 180.1)),
)


def parameters(row: EncoderRow, vocabulary: int) -> int:
    """Of ``roberta_<encoding>_base`` with BERT's pooler, for 512 tokens; nothing is allocated."""
    # Not torch.device("meta"): fairseq draws initial weights on the CPU, wherever the model is.
    with FakeTensorMode():
        model = make_roberta(
            row.encoding, segments=row.segments, vocabulary=vocabulary, **row.options
        )
        # The pooler is the dense layer of a classification head.
        model.register_classification_head("pooled", num_classes=2)
        unpooled = sum(
            p.numel() for p in model.classification_heads["pooled"].out_proj.parameters()
        )
    return sum(p.numel() for p in model.parameters()) - unpooled


def table() -> str:
    """Markdown: ours in millions, exactly, and the paper's."""
    found = []
    for row in ROWS:
        cells: list[str] = []
        for vocabulary, printed in zip(VOCABULARIES.values(), row.printed, strict=True):
            cells += [f"{parameters(row, vocabulary) / 1e6:.2f}M", f"{printed}M"]
        found.append([row.label, *cells])
    headers = ["encoder"]
    for name in VOCABULARIES:
        headers += [name, f"{name}, printed"]
    return markdown_table(Grid(headers, found))
