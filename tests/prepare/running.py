"""``diet-mt prepare`` in this process and in a killed one; its inputs and results."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from diet_mt.cli.main import main
from diet_mt.corpora import recipes
from diet_mt.system import process
from diet_mt.system.engine import LOCK

from ..corpora import wmt18
from ..corpora.server import manifest
from ..processes import forking

SMALL = ("--workers", "1", "--bpe-merges", "150")
SIZES = {"train": 300, "valid": 21, "test": 13}
ORIGINAL = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


@dataclass(frozen=True)
class Outcome:
    """Status, standard output and standard error of a command."""

    status: int
    out: str
    err: str

    def ok(self) -> str:
        """Its standard error."""
        assert self.status == 0, self.err
        return self.err


def prepare(*words: object, file_bytes: int | None = None, real: bool = False) -> Outcome:
    """Runs ``diet-mt prepare`` with these words; never raises.

    Args:
        file_bytes: No file may grow beyond this, as if the disk were full then.
        real: With fairseq-preprocess as a program of its own.
    """
    out, err = io.StringIO(), io.StringIO()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    start = patch.object(process, "subprocess", subprocess if real else forking())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), start:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes or before[0], before[1]))
            status = main(["prepare", *map(str, words)])
        except SystemExit as stop:
            status = int(stop.code or 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return Outcome(status, out.getvalue(), err.getvalue())


def killed(event: str, end: str, *words: object) -> str:
    """Forks; the child runs ``diet-mt prepare`` until one of its processes is about to do this, and
    all of them are killed (SIGKILL). Returns its standard error.

    Args:
        event: "os.rename" or "open", an audit event of Python's.
        end: End of the path to be renamed or opened.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.dup2(writing, 2)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115

        def hook(name: str, arguments: tuple[object, ...]) -> None:
            if name == event and str(arguments[0]).endswith(end):
                os.killpg(os.getpgrp(), signal.SIGKILL)

        sys.addaudithook(hook)
        process.subprocess = forking()
        try:
            main(["prepare", *map(str, words)])
        finally:
            os._exit(7)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        printed = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, printed
    return printed


@contextmanager
def sacrebleu_in(folder: Path) -> Iterator[None]:
    """While it lasts, SacreBLEU keeps WMT18 below ``folder``."""
    from sacrebleu.dataset import DATASETS

    from diet_mt.corpora import testset

    dataset = DATASETS["wmt18"]
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (testset, "SACREBLEU_DIR", folder),
            (dataset, "_outdir", folder / "wmt18"),
            (dataset, "_rawdir", folder / "wmt18" / "raw"),
        ):
            stack.enter_context(patch.object(owner, name, str(value)))
        yield


def only_error(outcome: Outcome) -> str:
    """The message of a failed run: one line, after the lines of progress."""
    assert outcome.status == 2, outcome.err
    errors = [line for line in outcome.err.split("\n") if not line.startswith(("==", "  "))]
    assert errors[-1] == ""
    assert len(errors) == 2, outcome.err
    assert errors[0].startswith("error: ")
    return errors[0].removeprefix("error: ")


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Time of modification and size of every file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


def texts(folder: Path) -> dict[str, bytes]:
    """Content of every file, except logs and times."""
    left_out = (LOCK, "stages.tsv")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".log" and path.name not in left_out
    }


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def stages_of(folder: Path) -> list[str]:
    """The completed stages, in their order."""
    return [line.split("\t")[0] for line in lines_of(folder / "stages.tsv")]


def sentences_in(path: Path, dictionary: str = "dict.txt") -> list[str]:
    """The tokens of each binarized sentence, read with fairseq; ``path``: without .idx."""
    from fairseq.data import Dictionary, data_utils

    entries = Dictionary.load(str(path.parent / dictionary))
    data = data_utils.load_indexed_dataset(str(path), entries)
    return [entries.string(sentence) for sentence in data]


def write_multi30k(folder: Path) -> None:
    """Files for ``prepare multi30k --from``, their ``manifest``, and ``made``, their text."""
    content = {}
    recipes.write_demo(folder / "made", SIZES)
    for split, name in ORIGINAL.items():
        for lang in ("en", "de"):
            text = (folder / "made" / f"{split}.{lang}").read_bytes()
            (folder / f"{name}.{lang}.gz").write_bytes(gzip.compress(text))
            content[f"{name}.{lang}"] = text
    (folder / "manifest").write_text(manifest("multi30k", content, "http://127.0.0.1:9"))


def write_news(folder: Path) -> None:
    """Files for ``prepare newstest en-cs --from``, with six lines that U+0085 would split."""
    sentences = wmt18.sentences(300, seed=6)
    for number, year in enumerate(range(2008, 2018)):
        some = sentences[number * 30 : number * 30 + 30]
        for lang in ("en", "cs"):
            lines = [s[lang] for s in some]
            if (year, lang) == (2009, "cs"):
                lines[:6] = [line.replace(",", ",\u0085") for line in lines[:6]]
            text = "".join(line + "\n" for line in lines)
            (folder / f"newstest{year}.en-cs.{lang}").write_text(text, encoding="utf-8")
