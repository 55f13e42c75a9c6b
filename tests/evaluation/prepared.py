"""What a training leaves behind."""

from __future__ import annotations

from pathlib import Path

import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_training_parser, parse_args_and_arch
from fairseq.tasks import setup_task
from omegaconf import OmegaConf


def write_checkpoint(data: Path, save: Path, *more: str) -> None:
    """What a training leaves after two epochs of seven updates in all, five of them metered."""
    words = [str(data), "--arch", "diet_rel_tiny", "--share-all-embeddings", "--seed", "5"]
    args = parse_args_and_arch(get_training_parser(), [*words, "--save-dir", str(save), *more])
    cfg = convert_namespace_to_omegaconf(args)
    model = setup_task(cfg.task).build_model(cfg.model)
    save.mkdir()
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": model.state_dict(),
        "optimizer_history": [{"num_updates": 7, "lr_scheduler_state": {}}],
        "extra_state": {
            "train_iterator": {"epoch": 3, "iterations_in_epoch": 0},
            "metrics": {
                "train": [(180, "wpb", "AverageMeter", {"sum": 1, "count": 1})],
                "default": [(180, "wpb", "AverageMeter", {"sum": 600.0, "count": 5})],
            },
        },
    }
    torch.save(state, save / "checkpoint_best.pt")
    (save / "command").write_text(f"fairseq-train {data} --save-dir {save}")
    (save / "done").touch()
