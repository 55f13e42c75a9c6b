"""--bf16 on a machine without a TPU."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from .test_resume import state
from .transcript import losses, texts
from .workshop import Workshop


def test_it_trains_and_decodes(workshop: Workshop, tmp_path: Path) -> None:
    """fairseq's command line takes --bf16 for a TPU, and would stop without torch_xla."""
    done = workshop.train("diet-rel", tmp_path, "--max-update", 14, "--bf16").ok()
    saved = state(tmp_path)
    common = saved["cfg"]["common"]
    assert (common["bf16"], common["tpu"]) == (True, False)
    # fairseq stores such weights as float32, but they are no others.
    weights = [value for name, value in saved["model"].items() if name.endswith(".weight")]
    assert weights
    assert all(torch.equal(value, value.bfloat16().float()) for value in weights)
    found = losses(done.stdout)
    assert all(math.isfinite(float(loss)) for loss in found.values())
    assert float(found[14]) < float(found[1])
    decoded = workshop.generate("diet-rel", "--path", tmp_path / "checkpoint_last.pt").ok()
    assert len(texts(decoded.stdout)) == len(workshop.lines())
