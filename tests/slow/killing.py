"""``diet-mt WORDS``, killed at a moment.

    killing.py JOURNAL WORDS...

A moment is right before or after a file below the current folder is opened for writing, renamed or
removed, or a folder made. Of a checkpoint it names the update, of a binarized file only the kind
(fairseq-preprocess always begins anew), of a decoding no checksum: a checkpoint stores times. It is
appended to JOURNAL unless it is there. DIET_KILL is a moment, or "next" for the first that is not
in JOURNAL: then the whole process group gets SIGKILL. DIET_MOMENTS: a pattern of those that count.
DIET_FILE_BYTES: no file may be larger. Programs that diet-mt starts run in forks, which have all
modules.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairseq.trainer import Trainer

from diet_mt.cli.main import main
from diet_mt.corpora import clean
from diet_mt.system import process
from tests.processes import forking

_VARYING = r"[^/]+(?=\.(bin|idx)$)|\b[0-9a-f]{16}\b"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _begin_removal(folder: str, *_: Any) -> None:
    for path in list(Path(folder).rglob("*"))[-1:]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


# Audit event -> what it announces, done here.
_OPERATIONS: dict[str, Callable[..., object]] = {
    "open": lambda path, mode, flags: os.close(os.open(path, flags, 0o666)),
    "os.rename": lambda source, target, *_: os.rename(source, target),
    "os.remove": lambda path, *_: os.remove(path),
    "os.rmdir": lambda path, *_: os.rmdir(path),
    "os.mkdir": lambda path, *_: os.mkdir(path),
    "shutil.rmtree": _begin_removal,
}


class Moments:
    """An audit hook of this process and its forks."""

    def __init__(self, journal: Path, kill: str) -> None:
        self.journal, self.kill = journal, kill
        self.known = set(journal.read_text(encoding="utf-8").split("\n"))
        self.here = f"{Path.cwd()}/"
        self.active = True
        self.updates = 0
        set_num_updates = Trainer.set_num_updates

        def watched(trainer: Trainer, updates: int) -> None:
            self.updates = updates
            set_num_updates(trainer, updates)

        Trainer.set_num_updates = watched

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        if event not in _OPERATIONS or not self.active:
            return
        target = given[1] if event == "os.rename" else given[0]
        if isinstance(target, int) or (event == "open" and not given[2] & _WRITING):
            return
        path = os.path.abspath(os.fsdecode(target))
        # Within a tree that is being removed names are relative to another folder.
        is_gone = event in ("os.remove", "os.rmdir") and not os.path.lexists(path)
        if is_gone or not path.startswith(self.here):
            return
        name = path.removeprefix(self.here)
        moment = f"{event} {re.sub(_VARYING, '', name)}"
        if "checkpoint" in name:
            moment += f" @{self.updates}"
        elif "stages.tsv" in name:
            ended = [each for each in os.listdir(os.path.dirname(path)) if ".part" not in each]
            moment += f" with {len(ended)}"
        # Before a new file is opened all is as after the moment that came before.
        if not (event == "open" and name.endswith((".part", ".tmp"))):
            self.at(f"before {moment}", event, given)
        self.at(f"after {moment}", event, given)

    def at(self, moment: str, event: str, given: tuple[Any, ...]) -> None:
        if moment in self.known or not re.search(os.environ.get("DIET_MOMENTS", ""), moment):
            return
        self.active = False
        self.known.add(moment)
        with open(self.journal, "a", encoding="utf-8") as file:
            file.write(f"{moment}\n")
        if self.kill in ("next", moment):
            if moment.startswith("after"):
                _OPERATIONS[event](*given)
            os.killpg(0, signal.SIGKILL)
        self.active = True


def run(journal: str, *words: str) -> int:
    os.setpgid(0, 0)
    if size := int(os.environ.get("DIET_FILE_BYTES", "0")):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    process.subprocess = forking()
    sys.addaudithook(Moments(Path(journal), os.environ.get("DIET_KILL", "")))
    return main(words)


clean.need_known(["en"])  # loads the model, which the forks then have
if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
