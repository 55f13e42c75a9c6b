"""Folders as trainings leave them, with logs as fairseq writes them."""

from __future__ import annotations

from pathlib import Path

JSON = (
    "2026-01-01 10:00:00 | INFO | train_inner | "
    '{"epoch": 1, "loss": "12.9", "ppl": "7640.2", "num_updates": "5"}\n'
    "2026-01-01 10:00:01 | INFO | valid | "
    '{"epoch": 1, "valid_loss": "5.000", "valid_ppl": "32.00", "valid_num_updates": "10"}\n'
    "2026-01-01 10:00:02 | INFO | valid | "
    '{"epoch": 2, "valid_loss": "4.000", "valid_ppl": "16.00", "valid_num_updates": "20", '
    '"valid_best_loss": "4.0"}\n'
)
SIMPLE = (
    "2026-01-01 10:00:00 | INFO | train_inner | epoch 001:      5 / 551 loss=12.9, ppl=7640.2\n"
    "2026-01-01 10:00:01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5.000 | "
    "ppl 32.00 | wps 11334 | wpb 3360.3 | bsz 31.9 | num_updates 10\n"
    "2026-01-01 10:00:02 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 4.000 | "
    "ppl 16.00 | wps 11334 | wpb 3360.3 | bsz 31.9 | num_updates 20 | best_loss 4\n"
)
POINTS = [[10, 5.0, 32.0], [20, 4.0, 16.0]]


def train(folder: Path, system: str, log: str = JSON, **options: str) -> Path:
    """A folder as a training leaves it."""
    folder.mkdir(parents=True)
    given = {"arch": f"roberta_{system}_tiny", "seed": "1", "tokens-per-sample": "128"}
    given |= {"task": "masked_lm", "mask-prob": "0.15", "sample-break-mode": "complete_doc"}
    given |= {name.replace("_", "-"): value for name, value in options.items()}
    words = "".join(f" --{name} {value}" for name, value in given.items())
    command = f"fairseq-train /somewhere/data/mlm.en/bin --user-dir /somewhere/diet_mt{words} "
    (folder / "command").write_text(command, encoding="utf-8")
    (folder / "revision").write_text("abc123\n", encoding="utf-8")
    header = "| num. shared model params: 1,858,480 (num. trained: 1,858,480)\n"
    (folder / "train.log").write_text(header + log, encoding="utf-8")
    return folder
