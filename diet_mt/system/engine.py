"""Resumable stages of a data preparation, with a lock, timings and checksums.

Each stage writes one file or folder as ``NAME.part`` and renames it when complete, so results are
never partial; a stage whose result exists is skipped. The same holds for each file within
``NAME.part``, so an interrupted stage continues.

The folder also holds ``settings``, on which the results depend; ``stages.tsv``: name, seconds and
lines (0: no text) of each stage in the order of completion; and, at the end, ``SHA256SUMS`` of the
untouched text and of the end result, for ``sha256sum --check``.
"""

from __future__ import annotations

import logging
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from .errors import UserError
from .files import lines_in, make_folder, read_text, sha256, write_lines, write_text
from .process import size_of
from .progress import announce, say

SETTINGS, _TABLE, SUMS = "settings", "stages.tsv", "SHA256SUMS"
RAW = "raw"  # untouched text
LOCK = ".lock"
_LEFTOVERS_S = 5  # wait for the child processes of a killed run to end
_SHORT_S = 0.5  # wait for a short use of a folder, such as writing one file
# Counts to verify at the end: name, actual number, expected number.
Count = tuple[str, int, int]
# filelock logs every lock, and fairseq's libraries may set the root logger to DEBUG.
logging.getLogger("filelock").setLevel(logging.WARNING)


@dataclass(frozen=True)
class Stage:
    """One file or folder of a preparation."""

    name: str
    does: str  # for a dry run
    make: Callable[[Path], object]  # writes the path, or completes an interrupted run's part
    settings: str = ""  # of this stage alone; earlier stages do not depend on them
    check: Callable[[Path], object] = lambda path: None  # raises UserError for a wrong result
    restarts: bool = False  # an interrupted run's part is removed before ``make``


@dataclass(frozen=True)
class Preparation:
    """The stages of one folder."""

    out: Path
    settings: str  # words, all that the results depend on
    stages: Sequence[Stage]
    counts: Callable[[], Iterable[Count]] = lambda: ()  # compared after the last stage
    text: str = ""  # file whose lines are counted in a folder: train.en
    result: str = ""  # the end result; empty: the folder


@contextmanager
def alone(folder: Path, wait_s: float = 0) -> Iterator[None]:
    """Excludes other processes and threads from an existing folder; reentrant.

    The operating system releases the lock when the process exits or crashes. ``wait_s``: seconds to
    wait for another process, ``math.inf`` for no limit. Raises :class:`UserError` if the folder
    is still in use, or cannot be written.
    """
    file = folder.resolve() / LOCK
    try:
        file.touch()  # raises here; filelock would retry forever
        lock = FileLock(file, is_singleton=True)
        try:
            lock.acquire(timeout=_SHORT_S, poll_interval=0.02)
        except Timeout:
            if not wait_s:
                raise
            say(f"{folder}: waiting for another process")
            lock.acquire(timeout=wait_s if wait_s < math.inf else -1, poll_interval=0.1)
    except Timeout:
        raise UserError(f"{folder}: in use by another process; wait for it, or end it") from None
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"{folder}: cannot be written ({why}); choose another folder") from None
    try:
        yield
    finally:
        lock.release()


def prepare(what: Preparation) -> None:
    """Runs all stages without a result. Raises UserError for other settings or wrong counts."""
    make_folder(what.out)
    with alone(what.out, _LEFTOVERS_S):
        _refuse_other_settings(what)
        _write_settings(what)
        for number, stage in enumerate(what.stages, start=1):
            _run(stage, what, f"{number} of {len(what.stages)}")
        wrong = False
        for name, actual, expected in what.counts():
            say(f"{name}: {actual}, expected {expected}")
            wrong |= actual != expected
        if wrong:
            raise UserError(f"{what.out}: not the expected counts; remove it and run again")
        if not (what.out / SUMS).exists():
            names = with_checksums(what.out, {what.out / RAW, what.out / what.result})
            write_lines(what.out / SUMS, [f"{sha256(what.out / name)}  {name}" for name in names])
    announce(f"ready: {what.out / what.result}")


def plan(what: Preparation) -> Iterator[str]:
    """Lines of a dry run: the folder, then name, state and description of each stage."""
    _refuse_other_settings(what)
    yield f"{what.out}: {what.settings}"
    for stage in what.stages:
        result, state = what.out / stage.name, "to do"
        if result.exists():
            state = "done before"
        elif _part(result).exists():
            state = "to continue"
        yield f"  {stage.name:14} {state:11}  {stage.does}"


def with_checksums(out: Path, parts: Iterable[Path]) -> list[str]:
    """Names, relative to ``out``, of the files in folders, but logs and the engine's own files."""
    files = {path for part in parts for path in part.rglob("*") if path.is_file()}
    names = (str(path.relative_to(out)) for path in sorted(files))
    own, ends = (SETTINGS, _TABLE, SUMS, LOCK), (".log", ".settings", ".part")
    return [name for name in names if not name.endswith(ends) and name not in own]


def missing_stages(out: Path) -> list[str]:
    """Names of completed stages whose result is missing."""
    return [name for name in _completed(out) if not (out / name).exists()]


def _completed(out: Path) -> dict[str, str]:
    """Rows of the table, by the name of a completed stage."""
    table = out / _TABLE
    rows = read_text(table).splitlines() if table.is_file() else []
    return {row.split("\t")[0]: row for row in rows}


def _run(stage: Stage, what: Preparation, place: str) -> None:
    result, part = what.out / stage.name, _part(what.out / stage.name)
    if result.exists():
        stage.check(result)
        announce(f"== {stage.name}: done before ({place})")
        return
    announce(f"== {stage.name} ... ({place})")
    started = time.monotonic()
    if stage.settings:
        file, now = _settings_of(result), f"{stage.settings}\n"
        if file.exists() and read_text(file) != now:
            _remove(part)
        write_text(file, now)
    (what.out / SUMS).unlink(missing_ok=True)
    if stage.restarts:
        _remove(part)
    stage.make(part)
    seconds = time.monotonic() - started
    text = part / what.text if part.is_dir() else part
    lines = lines_in(text) if text.is_file() else 0
    # The row is written first: if killed in between, the next run repeats the stage.
    rows = _completed(what.out)
    rows.pop(stage.name, None)
    rows[stage.name] = f"{stage.name}\t{seconds:.0f}\t{lines}"
    write_lines(what.out / _TABLE, rows.values())
    os.replace(part, result)
    size = f"{lines:,} lines" if lines else f"{size_of(result) / 2**20:,.1f} MiB"
    announce(f"== {stage.name}: {size}, {seconds:.0f} s ({place})")


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _settings_of(result: Path) -> Path:
    return result.with_name(f"{result.name}.settings")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refuse_other_settings(what: Preparation) -> None:
    results = [what.out / stage.name for stage in what.stages]
    if any(result.exists() for result in results):
        _compare(what.out / SETTINGS, what.settings, what.out)
    for stage, result in zip(what.stages, results, strict=True):
        file = _settings_of(result)
        if stage.settings and result.exists() and file.exists():
            _compare(file, stage.settings, result)


def _write_settings(what: Preparation) -> None:
    file, now = what.out / SETTINGS, f"{what.settings}\n"
    if not file.exists() or read_text(file) != now:
        # No stage is done yet; partial results with other settings are useless.
        for stage in what.stages:
            _remove(_part(what.out / stage.name))
        write_text(file, now)


def _compare(file: Path, now: str, made: Path) -> None:
    """Raises UserError, with the differences, if the settings ``now`` are not those of ``file``."""
    if not file.is_file():
        raise UserError(f"{made}: not made by diet-mt prepare; remove it, or give another --out")
    before = read_text(file).removesuffix("\n")
    if before != now:
        old, new = before.split(), now.split()
        was = " ".join(word for word in old if word not in new) or before
        wanted = " ".join(word for word in new if word not in old) or now
        settings = f"{_as_flags(was)}, not {_as_flags(wanted)}"
        raise UserError(f"{made} was made with {settings}; remove it, or give another --out")


def _as_flags(settings: str) -> str:
    """``BPE_MERGES=6000`` -> ``--bpe-merges 6000``."""
    return re.sub(
        r"\b([A-Z]+(?:_[A-Z]+)*)=", lambda m: f"--{m[1].lower().replace('_', '-')} ", settings
    )
