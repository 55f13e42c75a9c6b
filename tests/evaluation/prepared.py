"""Runs scripts, and makes what a training leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_training_parser, parse_args_and_arch
from fairseq.tasks import setup_task
from omegaconf import OmegaConf


def run(
    command: list[str], cwd: Path, first_on_path: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    places = [*([first_on_path] if first_on_path else []), str(Path(sys.executable).parent)]
    path = os.pathsep.join([*places, os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **settings}
    environment["PYTHON"] = sys.executable
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=True, timeout=120
    )


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
