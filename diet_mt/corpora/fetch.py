"""Brings the files of a public corpus into a folder, and lets nothing but those files through.

They come from a folder of the user's (``--folder``) or from the web. A text, which the manifest
lists without an address, is unpacked: from ``NAME`` or ``NAME.gz``, or from ``BASE/NAME.gz``
(``--url``). An archive, which has one, stays as it is: one in the user's folder is used where it
lies. A file has its name only once it is checked; an archive is not checked again while its size
and time of change stay what they were.

Command: ``python -m diet_mt.corpora.fetch --manifest M [--folder DIR] [--url BASE] --out OUT
NAME...`` writes a line ``NAME<TAB>PATH`` for each file.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

from ..command_line import run
from ..errors import UserError
from ..files import blocks, make_folder, opened, writing, writing_bytes
from ..stages.progress import Progress, say
from .download import Patience, alone, download
from .manifest import Checked, Item, read_manifest


def text_from_folder(folder: Path, item: Item, out: Path) -> None:
    """Copies ``folder/NAME`` or ``folder/NAME.gz``, unpacked, to ``out/NAME``.

    Raises:
        UserError: there is neither, or its text is not the one in the manifest.
    """
    for source in (folder / item.name, folder / f"{item.name}.gz"):
        if source.is_file():
            _unpack(source, item, out / item.name, hint="replace it by the original file")
            return
    raise UserError(f"{folder}: holds neither {item.name} nor {item.name}.gz")


def text_from_web(base: str, item: Item, out: Path, patience: Patience) -> None:
    """Downloads ``base/NAME.gz`` and unpacks it to ``out/NAME``.

    Raises:
        UserError: as ``download``; or the text is not the one in the manifest.
    """
    url = f"{base.rstrip('/')}/{item.name}.gz"
    part = out / f"{item.name}.gz.part"
    download(url, part, size=None, patience=patience)
    try:
        _unpack(part, item, out / item.name, hint=f"downloaded from {url}; run again to fetch anew")
    finally:
        part.unlink()  # wrong content would be wrong again: the next run starts afresh


def _unpack(source: Path, item: Item, out: Path, *, hint: str) -> None:
    checked = Checked(item.method)
    with writing_bytes(out) as file:
        try:
            with opened(source) as packed:
                for block in checked.over(blocks(packed)):
                    file.write(block)
        except (EOFError, zlib.error, OSError) as error:
            if getattr(error, "errno", None):  # from writing: it says so itself
                raise
            raise UserError(f"{source}: cannot be unpacked ({error}); {hint}") from None
        wrong = item.differs(checked.size, checked.digest)
        if wrong:
            raise UserError(f"{source}: not the expected text: {wrong}; {hint}")


def archives_are_there(folder: Path, archives: Sequence[Item]) -> None:
    """Raises UserError naming all archives that are not in the folder of the user's."""
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder to take the files from")
    absent = [item for item in archives if not (folder / item.name).is_file()]
    if absent:
        raise UserError(
            f"{folder}: holds no {', '.join(item.name for item in absent)}; fetch from "
            + ", ".join(str(item.url) for item in absent)
        )


def archive_in_folder(folder: Path, item: Item, stamps: Path) -> Path:
    """The archive of the user's, once it is checked.

    Raises:
        UserError: it is not there, or not the one in the manifest.
    """
    path = folder / item.name
    archives_are_there(folder, [item])
    wrong = _wrong_archive(path, item, stamps)
    if wrong:
        raise UserError(f"{path}: not the expected archive: {wrong}; fetch it from {item.url}")
    return path


def archive_from_web(item: Item, out: Path, patience: Patience) -> Path:
    """The archive in ``out``, downloaded unless it is there.

    Raises:
        UserError: as ``download``; or what came is not the archive in the manifest.
    """
    path, part = out / item.name, out / f"{item.name}.part"
    with alone(out):
        if path.is_file():
            wrong = _wrong_archive(path, item, out)
            if not wrong:
                return path
            raise UserError(f"{path}: not the expected archive: {wrong}; remove it to fetch anew")
        _make_sure_of_room(item, part)
        download(item.url, part, size=item.size, patience=patience)
        wrong = _wrong_archive(part, item, out)
        if wrong:
            part.unlink()
            raise UserError(
                f"{item.url}: not the expected archive: {wrong}; run again to fetch anew"
            )
        part.rename(path)
    return path


def _make_sure_of_room(item: Item, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    rest, free = (item.size or 0) - have, shutil.disk_usage(part.parent).free
    if rest > free:
        raise UserError(
            f"{part.parent}: {item.name} needs {rest >> 20} MiB more, but only {free >> 20} are "
            "free; make room or choose another folder"
        )


def _wrong_archive(path: Path, item: Item, stamps: Path) -> str:
    """What is wrong with an archive; empty if it is right, which is then remembered."""
    stamp = stamps / f"{item.name}.verified"
    state = path.stat()
    place = path.parent.resolve() / item.name  # a download is checked under another name
    seen = f"{place}\t{state.st_size}\t{state.st_mtime_ns}\t{item.checksum}\n"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == seen:
        return ""
    if item.size not in (None, state.st_size):
        return f"{state.st_size} bytes, expected {item.size}"
    checked, progress = Checked(item.method), Progress(f"{item.name}, checking", "MB")
    with open(path, "rb") as file:
        for block in checked.over(blocks(file)):
            progress.add(len(block) / 1e6)
    wrong = item.differs(checked.size, checked.digest)
    if not wrong:
        with writing(stamp) as out:
            out.write(seen)
    return wrong


def _text_is_there(path: Path, item: Item) -> bool:
    if not path.exists():
        return False
    checked = Checked(item.method)
    with open(path, "rb") as file:
        for _ in checked.over(blocks(file)):
            pass
    return not item.differs(checked.size, checked.digest)


def bring(item: Item, args: argparse.Namespace, patience: Patience) -> Path:
    """Fetches one file as the command line says; returns where it is."""
    if item.url:
        if args.folder is not None:
            return archive_in_folder(args.folder, item, args.out)
        return archive_from_web(item, args.out, patience)
    path: Path = args.out / item.name
    if not _text_is_there(path, item):
        if args.folder is not None:
            text_from_folder(args.folder, item, args.out)
        elif args.url is not None:
            text_from_web(args.url, item, args.out, patience)
        else:
            raise UserError(f"{args.manifest}: {item.name} has no address; give --url or --folder")
    return path


def _parser() -> argparse.ArgumentParser:
    usual = Patience()
    parser = argparse.ArgumentParser(
        prog="diet_mt.corpora.fetch", description="fetch and check files"
    )
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="take the files from here, not from the web")
    parser.add_argument("--url", help="download texts from below this address")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--tries", type=int, default=usual.tries, help="of a transfer (default 5)")
    parser.add_argument("--pause", type=float, default=usual.pause, help="seconds before another")
    parser.add_argument("names", nargs="+", metavar="NAME")
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def body() -> None:
        if args.tries < 1:
            raise UserError(f"--tries must be at least 1, got {args.tries}")
        items = read_manifest(args.manifest)
        for name in args.names:
            if name not in items:
                raise UserError(f"{args.manifest}: does not list {name}")
        if args.folder is not None:
            archives_are_there(args.folder, [items[name] for name in args.names if items[name].url])
        make_folder(args.out)
        for name in args.names:
            path = bring(items[name], args, Patience(args.tries, args.pause))
            say(f"{name}: {path.stat().st_size:,} bytes, checked")
            print(f"{name}\t{path.absolute()}", flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
