"""Folders that look prepared: what the commands that train look at, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_training_parser, parse_args_and_arch
from omegaconf import OmegaConf

EXAMPLES = {"CoLA": 8551, "STS-B": 5749, "XNLI": 392702}
WINDOWS = 88641  # of SQuAD


def write_place(folder: Path) -> None:
    """Corpora, tasks and a pretrained encoder, under the names that the golden commands have."""
    for corpus, files in {
        "multi30k.en-de": "train.en-de.en.idx bpe.codes",
        "wmt18.de-en": "train.de-en.de.idx test.de-en.de.idx bpe.codes",
        "wmt18.cs-en": "train.cs-en.cs.idx spm.model",
        "mlm": "",
        "mlm.xx": "",
    }.items():
        made = folder / "data" / corpus / "bin"
        made.mkdir(parents=True)
        for name in ("dict.txt", *files.split()):
            (made / name).touch()
    (folder / "data" / "mlm" / "bin" / "max-length").write_text("128\n", encoding="utf-8")
    for task, count in EXAMPLES.items():
        raw = folder / ("" if task == "XNLI" else "glue") / task / "raw"
        raw.mkdir(parents=True)
        (raw / "train.id").write_text("0\n" * count, encoding="utf-8")
    (folder / "SQuAD" / "train").mkdir(parents=True)
    about = f'{{"windows": {WINDOWS}}}'
    (folder / "SQuAD" / "train" / "about.json").write_text(about, encoding="utf-8")
    write_pretrained(folder / "pre.pt")


def write_pretrained(path: Path) -> None:
    """A checkpoint of a small diet-rel encoder, without its weights."""
    words = ["data", "--task", "masked_lm", "--criterion", "masked_lm", "--save-dir", "x"]
    words += ["--arch", "roberta_diet_rel_tiny", "--encoder-layers", "2"]
    words += ["--max-source-positions", "24", "--tokens-per-sample", "24"]
    cfg = convert_namespace_to_omegaconf(parse_args_and_arch(get_training_parser(), words))
    torch.save(state_of(cfg, updates=7, epoch=2), path)


def state_of(
    cfg: Any, *, updates: int, epoch: int, begun: int = 0, passed: int = 0
) -> dict[str, Any]:
    """A checkpoint as fairseq writes it; ``epoch``: the one that comes next; ``passed``: so many
    validations did not improve on the best.
    """
    iterator = {"epoch": epoch, "iterations_in_epoch": begun}
    history = {"num_updates": updates, "lr_scheduler_state": {}}
    history |= {"criterion_name": "x", "optimizer_name": "y"}
    return {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True) if cfg else None,
        "model": {},
        "best_loss": 1.0,
        "optimizer_history": [history],
        "extra_state": {
            "train_iterator": iterator,
            "best": 1.0,
            "patience": {"best": 1.0, "num_runs": passed},
        },
    }
