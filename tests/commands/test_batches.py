"""A sentence's translation depends neither on its padding nor on the batch that it travels in.

On the way: every attention module of a model loaded into a fresh process is really called.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .rescoring import TOLERANCE
from .transcript import translations
from .workshop import BATCHES, SPY, Workshop

# Options of fairseq-generate, the padding that sources then have, and whether one batch holds all.
# --left-pad-source is on by default and a flag without a value: giving it switches it off.
BATCHINGS = {
    "left": ((), ["left"], False),
    "right": (("--left-pad-source",), ["right"], False),
    "alone": (("--batch-size", 1), [], False),
    "together": (("--batch-size", 100, "--max-tokens", 99999, *BATCHES), ["left"], True),
}


@pytest.mark.parametrize("encoding", ["diet-rel", "linformer"])
def test_translations_are_the_same_in_every_batch(
    workshop: Workshop, tmp_path: Path, encoding: str
) -> None:
    lines, report = workshop.lines(), tmp_path / "report.json"
    found = {}
    for name, (options, padding, together) in BATCHINGS.items():
        limits = ("--max-tokens", 60) if name in ("left", "right") else ()
        env = {"DIET_SPY_REPORT": str(report)}
        done = workshop.generate(encoding, *SPY, *limits, *options, env=env).ok()
        found[name] = translations(done.stdout)
        seen = json.loads(report.read_text(encoding="utf-8"))
        assert seen["padding"] == padding, name  # otherwise the options did not do their part
        assert (seen["largest_batch"] == len(lines)) is together, name
        # Two layers in the encoder; two in the decoder, with two attentions each. A fused path, as
        # stock fairseq has one for its encoder layers, would leave some of them out.
        assert len(seen["calls"]) == 6
        assert min(seen["calls"]) > 0, name
    for name, other in found.items():
        assert len(other) == len(lines)
        for number, one in found["left"].items():
            assert other[number].texts == one.texts, (name, number)
            assert other[number].scores == pytest.approx(one.scores, abs=TOLERANCE)
            assert other[number].positional[0] == pytest.approx(one.positional[0], abs=TOLERANCE)
