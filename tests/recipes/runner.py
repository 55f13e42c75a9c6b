"""Runs the recipes in data-prep/ as a user would, in an environment of their own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
KILLER = Path(__file__).resolve().parent / "killer"

# Settings of the recipes, which those who run the tests may have set for themselves.
_OURS = ("MULTI30K", "NEWSTEST", "WMT18", "SACREBLEU", "SUBWORDS", "CLEAN", "OUT", "DOWNLOADS")


def run(
    recipe: str, *arguments: str, file_bytes: int | None = None, **settings: object
) -> subprocess.CompletedProcess[str]:
    """Runs ``data-prep/prepare-RECIPE.sh`` with these settings; never raises.

    Args:
        file_bytes: No file may grow beyond this, as if the disk were full then.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environment |= {"PYTHON": sys.executable, "WORKERS": "1", "BPE_MERGES": "150"}
    environment |= {name: str(value) for name, value in settings.items()}
    command = ["bash", str(ROOT / "data-prep" / f"prepare-{recipe}.sh"), *arguments]
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,  # a process group of its own, which can be killed as a whole
        preexec_fn=None if file_bytes is None else partial(_limit_files, file_bytes),
    )


def prepare(
    archives: Path, out: Path, *arguments: str, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Runs prepare-wmt18.sh with a cache of SacreBLEU's, downloads and a manifest of its own."""
    given = {
        "OUT": out,
        "DOWNLOADS": out.parent / "downloads",
        "SACREBLEU": out.parent / "sacrebleu",
        "WMT18_MANIFEST": archives / "manifest",
        "SPM_SIZE": 130,
        "FETCH": "--tries 3 --pause 0",
    }
    return run("wmt18", *arguments, **{**given, **settings})


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def killed_at(event: str, end: str) -> dict[str, object]:
    """Settings for ``run``: SIGKILL for all its processes, once one is about to do this.

    Args:
        event: "os.rename" or "open", an audit event of Python's.
        end: How the path begins to be renamed, or to be opened, ends.
    """
    path = os.pathsep.join([str(KILLER), os.environ.get("PYTHONPATH", "")])
    return {"KILL_AT": f"{event}:{end}", "PYTHONPATH": path}


def only_error(result: subprocess.CompletedProcess[str]) -> str:
    """The message of a run that failed: one line, after the lines that tell how far it came."""
    assert result.returncode == 2, result.stderr
    errors = [line for line in result.stderr.split("\n") if not line.startswith(("==", "  "))]
    assert errors[-1] == ""
    assert len(errors) == 2, result.stderr
    assert errors[0].startswith("error: ")
    return errors[0]


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Of every file and folder: when it was changed, and its size."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
    }


def texts(folder: Path) -> dict[str, bytes]:
    """What is in every file, less logs and times and the places of archives."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".log" and path.name not in ("stages.tsv", "archives")
    }


def stages_of(folder: Path) -> list[str]:
    """The stages that were made, in the order in which they ended."""
    return [line.split("\t")[0] for line in (folder / "stages.tsv").read_text().split("\n")[:-1]]


def sentences_in(bin_folder: Path, pair: str, split: str, lang: str) -> list[str]:
    """The tokens of each binarised sentence, read with fairseq."""
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(bin_folder / f"dict.{lang}.txt"))
    data = data_utils.load_indexed_dataset(str(bin_folder / f"{split}.{pair}.{lang}"), dictionary)
    return [dictionary.string(sentence) for sentence in data]
