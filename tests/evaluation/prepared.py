"""What a training leaves behind."""

from __future__ import annotations

from pathlib import Path

import torch
from fairseq.tasks import setup_task

from ..checkpoints import config_of, state_of


def write_checkpoint(data: Path, save: Path, *more: str) -> None:
    """What a training leaves after two epochs of seven updates in all, five of them metered."""
    words = [str(data), "--arch", "diet_rel_tiny", "--share-all-embeddings", "--seed", "5"]
    cfg = config_of(*words, "--save-dir", str(save), *more)
    model = setup_task(cfg.task).build_model(cfg.model)
    save.mkdir()
    metrics = {
        "train": [(180, "wpb", "AverageMeter", {"sum": 1, "count": 1})],
        "default": [(180, "wpb", "AverageMeter", {"sum": 600.0, "count": 5})],
    }
    torch.save(state_of(cfg, model, metrics=metrics), save / "checkpoint_best.pt")
    (save / "command").write_text(f"fairseq-train {data} --save-dir {save}")
    (save / "done").touch()
