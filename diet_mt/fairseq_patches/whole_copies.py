"""``checkpoint_last.pt`` is replaced in one step.

fairseq writes a checkpoint aside and renames it, but then copies it in place to
``checkpoint_last.pt``: a run killed there has nothing to continue from. Replaced:
``PathManager.copy``, by a function that calls it.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

from fairseq.file_io import PathManager


def copy_whole(copy: Callable[..., Any]) -> Callable[..., Any]:
    """``copy(source, target, overwrite)`` that shows ``target`` only when it is complete."""

    @functools.wraps(copy)
    def wrapped(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if PathManager.path_requires_pathmanager(dst_path):
            return copy(src_path, dst_path, overwrite=overwrite)
        result = copy(src_path, f"{dst_path}.part", overwrite=True)
        os.replace(f"{dst_path}.part", dst_path)
        return result

    return wrapped


PathManager.copy = staticmethod(copy_whole(PathManager.copy))
