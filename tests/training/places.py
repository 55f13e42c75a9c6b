"""Folders that look prepared: what the commands that train look at, and no more."""

from __future__ import annotations

from pathlib import Path

import torch

from ..checkpoints import config_of, state_of

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
    torch.save(state_of(config_of(*words)), path)
