"""The folder of patches: all are listed, described and in place."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairseq.modules.quantization.scalar import utils as scalar_utils

from diet_mt import fairseq_patches

FOLDER = Path(str(fairseq_patches.__file__)).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def hooks() -> Iterator[tuple[Any, str]]:
    """Owner and attribute of each ``owner.attribute = function`` that a patch executes."""
    for file in FILES:
        for line in ast.parse((FOLDER / f"{file}.py").read_text(encoding="utf-8")).body:
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Attribute):
                owner = ast.unparse(line.targets[0].value)
                yield getattr(getattr(fairseq_patches, file), owner), line.targets[0].attr


def test_every_file_is_imported_and_in_the_docstring() -> None:
    assert all(hasattr(fairseq_patches, file) for file in FILES)
    assert re.findall(r"^``(\w+)``$", fairseq_patches.__doc__ or "", re.MULTILINE) == FILES


def test_every_hook_is_in_place_and_in_the_docstring() -> None:
    names = set(re.findall(r"\w+", fairseq_patches.__doc__ or ""))
    for owner, name in hooks():
        assert name in names
        hook = getattr(owner, name)
        if owner is scalar_utils:  # a table, not a function
            assert type(hook).__module__ == "diet_mt.fairseq_patches.scalar_quantization"
        elif owner is not sys:  # pytest has its own excepthook while tests run
            assert Path(hook.__code__.co_filename).parent == FOLDER
