"""Stages of a preparation, which are skipped if done, resumable, locked and timed.

Every stage makes one file or folder: it is written as ``NAME.part`` and renamed when complete, so
what has its name is whole, and a stage whose result exists is skipped. Within ``NAME.part`` the
same holds for each file, so an interrupted stage continues.

Next to the results, the folder holds ``settings``, which they depend on, ``stages.tsv``: name,
seconds and lines (0: no text) of each stage in the order of completion, and finally
``SHA256SUMS`` of the untouched text and of the end result, for ``sha256sum --check``.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import sys
import threading
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
MIB = 1 << 20
_LARGE = 1000  # MiB, from which the size is announced
_LEFTOVERS_S = 5  # wait for the child processes of a killed run to end
# Counts to verify at the end: name, actual number, expected number.
Count = tuple[str, int, int]

_LOCK, _HOLDER = ".lock", ".holder"
OWN_FILES = (_LOCK, _HOLDER)
# Between taking a lock and naming its holder, and between removing the name and giving it back.
_TRANSITION_S = 0.5
_HELD: set[tuple[int, Path]] = set()  # (thread, folder) of this process
# It logs every lock, and fairseq's libraries may set the root logger to DEBUG.
logging.getLogger("filelock").setLevel(logging.WARNING)


@dataclass(frozen=True)
class Stage:
    """One file or folder, and how it is made.

    ``make`` is given the path to write, where an interrupted run may have left something, unless
    the stage ``restarts``. ``check`` raises UserError for an existing result that is wrong.
    """

    name: str
    does: str  # for a dry run
    make: Callable[[Path], object]
    room: Callable[[], float] = lambda: 0  # MiB of disk
    settings: str = ""  # of this stage and those after it, but not of those before it
    check: Callable[[Path], object] = lambda path: None
    restarts: bool = False


@dataclass(frozen=True)
class Preparation:
    """The stages of one folder.

    ``settings``: words, all that the results depend on; a folder with others is refused.
    ``counts``: compared when all stages are done.
    """

    out: Path
    settings: str
    stages: Sequence[Stage]
    counts: Callable[[], Iterable[Count]] = lambda: ()
    text: str = ""  # file whose lines are counted in a folder: train.en
    result: str = ""  # the end result; empty: the folder


@contextmanager
def alone(folder: Path, wait_s: float = 0) -> Iterator[None]:
    """Excludes other processes and threads from an existing folder; reentrant.

    The lock is the operating system's: released when the process exits or crashes. A file next to
    it names the holder, for the error of the others.

    Args:
        wait_s: Seconds to wait for another process to leave; ``math.inf``: as long as it takes.
    """
    if (own := (threading.get_ident(), folder.resolve())) in _HELD:
        yield
        return
    lock, holder = FileLock(folder / _LOCK), folder / _HOLDER
    try:
        (folder / _LOCK).touch()  # raises here; filelock would retry forever
        try:
            lock.acquire(timeout=_TRANSITION_S, poll_interval=0.02)
        except Timeout:
            if not wait_s:
                raise
            say(f"{folder}: waiting for {_name_in(holder)}")
            lock.acquire(timeout=wait_s if wait_s < float("inf") else -1, poll_interval=0.1)
    except Timeout:
        message = f"{folder}: {_name_in(holder)} is at work on it; wait for its end, or end it"
        raise UserError(message) from None
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror or error}); choose another folder"
        ) from None
    try:
        _HELD.add(own)
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        name = f"process {os.getpid()} on {os.uname().nodename} ({command}), since {since},"
        write_text(holder, f"{name}\n")
        yield
    finally:
        _HELD.discard(own)
        holder.unlink(missing_ok=True)
        lock.release()


def _name_in(holder: Path) -> str:
    try:
        name = read_text(holder).strip()
    except OSError:
        name = ""
    return name if name.startswith("process ") else "another process"


def prepare(what: Preparation) -> None:
    """Runs all stages whose results do not exist."""
    make_folder(what.out)
    with alone(what.out, _LEFTOVERS_S):
        _refuse_other_settings(what)
        _write_settings(what)
        _remove_stale(what)
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
    """A line for the folder and for each stage: whether it is done, and what it does."""
    _refuse_other_settings(what)
    yield f"{what.out}: {what.settings}"
    stale = _stale(what)
    for stage in what.stages:
        result, state = what.out / stage.name, "to do"
        if stage not in stale and result.exists():
            state = "done before"
        elif stage not in stale and _part(result).exists():
            state = "to continue"
        yield f"  {stage.name:14} {state:11}  {stage.does}"


def room_for(percent: float, path: Path) -> float:
    """MiB: a percentage of the size of a file or folder."""
    return size_of(path) * percent / 100 / MIB


def with_checksums(out: Path, parts: Iterable[Path]) -> list[str]:
    """Names of the files below these folders, without logs and the engine's own files."""
    files = {path for part in parts for path in part.rglob("*") if path.is_file()}
    names = (str(path.relative_to(out)) for path in sorted(files))
    own = (SETTINGS, _TABLE, SUMS, *OWN_FILES)
    ends = (".log", ".settings", ".part")
    return [name for name in names if not name.endswith(ends) and name not in own]


def missing_stages(out: Path) -> list[str]:
    """Names of completed stages whose result is missing."""
    return [name for name in _completed(out) if not (out / name).exists()]


def _completed(out: Path) -> dict[str, str]:
    """Name of each completed stage -> its row in the table."""
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
        write_text(_settings_of(result), f"{stage.settings}\n")
    _need_room(what.out, stage)
    (what.out / SUMS).unlink(missing_ok=True)
    if stage.restarts:
        _remove(part)
    stage.make(part)
    seconds = time.monotonic() - started
    text = part / what.text if part.is_dir() else part
    lines = lines_in(text) if text.is_file() else 0
    # The row comes first: after a kill in between, the stage is repeated and its row replaced.
    rows = _completed(what.out)
    rows.pop(stage.name, None)
    rows[stage.name] = f"{stage.name}\t{seconds:.0f}\t{lines}"
    write_lines(what.out / _TABLE, rows.values())
    os.replace(part, result)
    size = f"{lines:,} lines" if lines else f"{size_of(result) / MIB:,.1f} MiB"
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


def _need_room(out: Path, stage: Stage) -> None:
    needed, free = stage.room(), shutil.disk_usage(out).free / MIB
    if needed > free:
        raise UserError(
            f"{out}: {stage.name} needs about {needed:.0f} MiB, but only {free:.0f} MiB are free; "
            "make room, or give another --out"
        )
    if needed >= _LARGE:
        say(f"{stage.name} needs about {needed:,.0f} MiB of disk; {free:,.0f} MiB are free")


def _refuse_other_settings(what: Preparation) -> None:
    results = [what.out / stage.name for stage in what.stages]
    if any(result.exists() for result in results):
        _compare(what.out / SETTINGS, what.settings, what.out)
    for stage, result in zip(what.stages, results, strict=True):
        if stage.settings and result.exists():
            _compare(_settings_of(result), stage.settings, result)


def _write_settings(what: Preparation) -> None:
    file, now = what.out / SETTINGS, f"{what.settings}\n"
    if not file.exists() or read_text(file) != now:
        # No stage is done yet; partial results with other settings are useless.
        for stage in what.stages:
            _remove(_part(what.out / stage.name))
        write_text(file, now)


def _stale(what: Preparation) -> Sequence[Stage]:
    """A stage whose result is missing and had other settings, and those after it, which read it."""
    for place, stage in enumerate(what.stages):
        result = what.out / stage.name
        file = _settings_of(result)
        earlier = read_text(file) if file.is_file() else None
        if not result.exists() and earlier not in (None, f"{stage.settings}\n"):
            return what.stages[place:]
    return ()


def _remove_stale(what: Preparation) -> None:
    for stage in _stale(what):
        result = what.out / stage.name
        if result.exists():
            announce(f"== {stage.name}: removed, it was made with other settings")
        (what.out / SUMS).unlink(missing_ok=True)
        _remove(result)
        _remove(_part(result))


def _compare(file: Path, now: str, made: Path) -> None:
    """Raises UserError if the settings differ from ``file``, with the differences."""
    if not file.is_file():
        raise UserError(
            f"{made}: was not made by diet-mt prepare; remove it, or give another --out"
        )
    before = read_text(file).removesuffix("\n")
    if before != now:
        old, new = before.split(), now.split()
        was = " ".join(word for word in old if word not in new) or before
        wanted = " ".join(word for word in new if word not in old) or now
        raise UserError(
            f"{made} was made with {_as_flags(was)}, not {_as_flags(wanted)}; remove it, or give "
            "another --out"
        )


def _as_flags(settings: str) -> str:
    """``BPE_MERGES=6000`` -> ``--bpe-merges 6000``."""
    return re.sub(
        r"\b([A-Z]+(?:_[A-Z]+)*)=", lambda m: f"--{m[1].lower().replace('_', '-')} ", settings
    )
