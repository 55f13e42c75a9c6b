"""The demo corpus (``word_order.py``), from its sentences to fairseq's binaries."""

from __future__ import annotations

from pathlib import Path

from ..stages.engine import Preparation, Stage
from . import word_order
from .settings import TextSettings
from .shared_stages import prepared


def preparation(out: Path, text: TextSettings, sizes: dict[str, int], seed: int) -> Preparation:
    """``sizes``: pairs of train, valid and test."""

    def make_raw(to: Path) -> None:
        word_order.generate(to, sizes, seed)

    pairs = "+".join(str(sizes[split]) for split in ("train", "valid", "test"))
    does = f"{pairs} generated pairs, seed {seed}"
    return prepared(out, [Stage("raw", does, make_raw)], text, f"pairs={pairs} seed={seed}")
