"""Preparations in stages, which are skipped, continued and timed.

Every stage makes one file or folder: it is written as ``NAME.part`` and renamed when complete, so
what has its name is whole, and a stage whose result is there is skipped. Within ``NAME.part`` the
same holds for each file, so what was interrupted continues.

Beside the results, the folder holds ``settings``, what it was made with, ``stages.tsv``: name,
seconds and lines (0: no text) of each stage, in the order in which they ended, and in the end
``SHA256SUMS`` of the untouched text and of what is ready, as ``sha256sum --check`` reads it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..files import lines_in, make_folder, read_text, sha256, write_lines, write_text
from .lock import OWN_FILES, alone
from .progress import announce, say
from .watch import size_of

SETTINGS, _TABLE, SUMS = "settings", "stages.tsv", "SHA256SUMS"
RAW = "raw"  # untouched text
MIB = 1 << 20
_LARGE = 1000  # MiB: so much is announced
_LEFTOVERS_S = 5  # until the processes of a run that was killed have ended, too
# What is compared in the end: its name, what was found, and what was expected.
Count = tuple[str, int, int]


@dataclass(frozen=True)
class Stage:
    """One file or folder, and how it is made.

    ``make`` is given the path to write, where an interrupted run may have left something; a stage
    that ``restarts`` finds nothing there. ``check`` looks at a result that is there already; it may
    raise UserError.
    """

    name: str
    does: str  # for a dry run
    make: Callable[[Path], object]
    room: Callable[[], float] = lambda: 0  # MiB that it will take
    settings: str = ""  # what it depends on, and the stages before it do not
    check: Callable[[Path], object] = lambda path: None
    restarts: bool = False


@dataclass(frozen=True)
class Preparation:
    """The stages of one folder.

    ``settings``: words, all that the results depend on; a folder made with others is refused.
    ``counts``: looked at when all stages are done.
    """

    out: Path
    settings: str
    stages: Sequence[Stage]
    counts: Callable[[], Iterable[Count]] = lambda: ()
    text: str = ""  # the file of a folder whose lines stand for it: train.en
    result: str = ""  # what is ready in the end; empty: the folder


def prepare(what: Preparation) -> None:
    """Makes all that is not there yet. Raises UserError where another process is at work on the
    folder; it was made with other settings; the disk is too small; the counts are not as expected;
    or as the stages.
    """
    make_folder(what.out)
    with alone(what.out, _LEFTOVERS_S):
        _refuse_other_settings(what)
        _keep_settings(what)
        _remove_stale(what)
        for stage in what.stages:
            _run(stage, what)
        wrong = False
        for name, found, expected in what.counts():
            say(f"{name}: {found}, expected {expected}")
            wrong |= found != expected
        if wrong:
            raise UserError(
                f"{what.out} does not have the expected counts; remove it and run again"
            )
        if not (what.out / SUMS).exists():
            write_lines(what.out / SUMS, list(_sums(what)))
    announce(f"ready: {what.out / what.result}")


def plan(what: Preparation) -> Iterator[str]:
    """A line for the folder and for each stage: whether it is done, and what it does. Raises
    UserError where the folder was made with other settings.
    """
    _refuse_other_settings(what)
    yield f"{what.out}: {what.settings}"
    stale = [stage.name for stage in _stale(what)]
    for stage in what.stages:
        if stage.name in stale:
            state = "to do"
        elif (what.out / stage.name).exists():
            state = "done before"
        else:
            state = "to continue" if _part(what.out / stage.name).exists() else "to do"
        yield f"  {stage.name:14} {state:11}  {stage.does}"


def room_for(percent: float, path: Path) -> float:
    """MiB: that share of what is there."""
    return size_of(path) * percent / 100 / MIB


def _sums(what: Preparation) -> Iterator[str]:
    for name in with_checksums(what.out, {what.out / RAW, what.out / what.result}):
        yield f"{sha256(what.out / name)}  {name}"


def with_checksums(out: Path, parts: Iterable[Path]) -> list[str]:
    """Names of the files below these folders that are not a log or one of the books."""
    found = {path for part in parts for path in part.rglob("*") if path.is_file()}
    names = (str(path.relative_to(out)) for path in sorted(found))
    own = (SETTINGS, _TABLE, SUMS, *OWN_FILES)
    ends = (".log", ".settings", ".part")
    return [name for name in names if not name.endswith(ends) and name not in own]


def missing_stages(out: Path) -> list[str]:
    """Names of those that have ended, and whose result is gone."""
    table = out / _TABLE
    lines = read_text(table).splitlines() if table.is_file() else []
    return [name for name in (line.split("\t")[0] for line in lines) if not (out / name).exists()]


def _run(stage: Stage, what: Preparation) -> None:
    result, part = what.out / stage.name, _part(what.out / stage.name)
    if result.exists():
        stage.check(result)
        announce(f"== {stage.name}: done before")
        return
    announce(f"== {stage.name} ...")
    started = time.monotonic()
    if stage.settings:
        write_text(result.with_name(f"{stage.name}.settings"), f"{stage.settings}\n")
    _make_sure_of_room(what.out, stage)
    (what.out / SUMS).unlink(missing_ok=True)  # of what is there no longer
    if stage.restarts:
        _remove(part)
    stage.make(part)
    seconds = time.monotonic() - started
    text = part / what.text if part.is_dir() else part
    lines = lines_in(text) if text.is_file() else 0
    # The row comes first: a kill in between repeats the stage, and replaces the row.
    table = what.out / _TABLE
    before = read_text(table).splitlines() if table.exists() else []
    others = [row for row in before if row.split("\t")[0] != stage.name]
    write_lines(table, [*others, f"{stage.name}\t{seconds:.0f}\t{lines}"])
    os.replace(part, result)
    size = f"{lines:,} lines" if lines else f"{size_of(result) / MIB:,.1f} MiB"
    announce(f"== {stage.name}: {size}, {seconds:.0f} s")


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _make_sure_of_room(out: Path, stage: Stage) -> None:
    needed, free = stage.room(), shutil.disk_usage(out).free / MIB
    if needed > free:
        raise UserError(
            f"{out}: {stage.name} needs about {needed:.0f} MiB, but only {free:.0f} MiB are free; "
            "make room, or give another --out"
        )
    if needed >= _LARGE:
        say(f"{stage.name} needs about {needed:,.0f} MiB of disk; {free:,.0f} MiB are free")


def _refuse_other_settings(what: Preparation) -> None:
    if any((what.out / stage.name).exists() for stage in what.stages):
        _compare(what.out / SETTINGS, what.settings, what.out)
    for stage in what.stages:
        result = what.out / stage.name
        if stage.settings and result.exists():
            _compare(result.with_name(f"{stage.name}.settings"), stage.settings, result)


def _keep_settings(what: Preparation) -> None:
    file, now = what.out / SETTINGS, f"{what.settings}\n"
    if not file.exists() or read_text(file) != now:
        # Nothing is done yet; what was begun with others is of no use.
        for stage in what.stages:
            _remove(_part(what.out / stage.name))
        write_text(file, now)


def _stale(what: Preparation) -> Sequence[Stage]:
    """A stage whose result is gone and had other settings, and those behind it, which read it."""
    for place, stage in enumerate(what.stages):
        result = what.out / stage.name
        file = result.with_name(f"{stage.name}.settings")
        known = read_text(file) if file.is_file() else None
        if not result.exists() and known not in (None, f"{stage.settings}\n"):
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
    """Raises UserError where ``file`` has other settings than these, naming those that differ."""
    if not file.is_file():
        raise UserError(
            f"{made}: was not made by diet-mt prepare; remove it, or give another --out"
        )
    before = read_text(file).removesuffix("\n")
    if before != now:
        old, new = _words(before), _words(now)
        was = " ".join(word for word in old if word not in new) or before
        wanted = " ".join(word for word in new if word not in old) or now
        raise UserError(
            f"{made} was made with {_as_flags(was)}, not {_as_flags(wanted)}; remove it, or give "
            "another --out"
        )


def _as_flags(settings: str) -> str:
    """``BPE_MERGES=6000`` -> ``--bpe-merges 6000``, as it was given."""
    return re.sub(
        r"\b([A-Z]+(?:_[A-Z]+)*)=",
        lambda found: f"--{found[1].lower().replace('_', '-')} ",
        settings,
    )


def _words(settings: str) -> list[str]:
    try:
        return shlex.split(settings)
    except ValueError:
        return settings.split()
