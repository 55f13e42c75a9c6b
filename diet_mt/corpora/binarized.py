"""What a folder made by fairseq-preprocess says about itself."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UserError


def bin_folder(data: Path) -> Path:
    """``data`` or, of a prepared corpus, its ``bin``. Raises UserError if neither is binarized."""
    for folder in (data, data / "bin"):
        if folder.is_dir() and any(folder.glob("dict*.txt")):
            return folder
    what = "no such folder" if not data.exists() else "holds no data made by fairseq-preprocess"
    raise UserError(f"{data}: {what}; prepare it first, see diet-mt prepare --help")


def language_pair(data: Path, subset: str = "") -> tuple[str, str]:
    """Source and target language of a part of a binarized folder, or of any.

    Raises UserError if it holds none.
    """
    part = re.escape(subset) or "[^.]+"
    pattern = re.compile(rf"{part}\.([^.-]+)-([^.-]+)\.\1\.(idx|bin)")
    names = sorted(path.name for path in data.iterdir()) if data.is_dir() else []
    for name in names:
        match = pattern.fullmatch(name)
        if match:
            return match[1], match[2]
    what = f"'{subset}' data" if subset else "sentence pairs"
    raise UserError(f"{data}: no {what} made by fairseq-preprocess in this folder")
