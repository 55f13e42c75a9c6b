"""Files of public corpora, identified by checksums, and extraction of archives.

``corpora.yaml`` lists them. A text is ``NAME`` or ``NAME.gz`` in the user's folder, or downloaded
from ``URL/NAME.gz``; its checksum is that of the unpacked content. An archive has its own URL and
stays packed. Downloads are resumed, and end in ``.part`` until their checksum is verified. Proxies
are taken from the environment.
"""

from __future__ import annotations

import gzip
import math
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any

import yaml

from ..system.engine import alone
from ..system.errors import UserError
from ..system.files import (
    BLOCK,
    checksum,
    make_folder,
    opened,
    plain_or_gz,
    raw_bytes,
    writing_bytes,
)
from ..system.progress import Progress, say

CORPORA = Path(__file__).with_name("corpora.yaml")
_TIMEOUT = 60  # seconds without data


def corpora(path: Path | None = None) -> dict[str, Any]:
    """Corpus -> entry in a YAML file, by default ``corpora.yaml``. Raises UserError if invalid."""
    path = path or CORPORA
    try:
        entries = yaml.safe_load(raw_bytes(path))
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML ({error})") from None
    if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
        raise UserError(f"{path}: expected a mapping of corpora")
    return entries


@dataclass(frozen=True)
class CorpusFile:
    """A file of a public corpus: an archive if it has a URL, otherwise a text."""

    name: str
    checksum: str  # SHA-256, or md5:...
    url: str = ""
    size: int | None = None  # bytes

    def fault_of(self, path: Path) -> str:
        """Description of a wrong checksum of the copy ``path``; empty if it is correct."""
        method, _, expected = self.checksum.rpartition(":")
        digest = checksum(path, method or "sha256")
        size = path.stat().st_size
        return "" if digest == expected else f"{size} bytes with {digest}, expected {expected}"

    def need_same(self, path: Path, where: object, hint: str) -> None:
        """Raises :class:`UserError` for a wrong checksum; ``where``: name in the message."""
        if fault := self.fault_of(path):
            raise UserError(f"{where}: not the expected {self.name}: {fault}; {hint}")


@dataclass(frozen=True)
class Source:
    """Origin of the files of a corpus: a user's folder, or downloads."""

    corpus: str  # in corpora.yaml
    folder: Path | None = None  # of the user; None: the web
    manifest: Path | None = None  # other URLs and checksums
    tries: int = 5  # per download
    pause: float = 5.0  # seconds before the second try, then twice as long each time

    @cached_property
    def entry(self) -> dict[str, Any]:
        """The entry of the corpus in ``corpora.yaml``, updated by the manifest."""
        other = {} if self.manifest is None else corpora(self.manifest).get(self.corpus, {})
        return {**corpora()[self.corpus], **other}

    def listed(self, names: Iterable[str]) -> list[CorpusFile]:
        """Descriptions of files. Raises :class:`UserError` for an unknown name."""
        known, files = self.entry["files"], []
        for name in names:
            if name not in known:
                raise UserError(f"{self.manifest or CORPORA}: no {name} in {self.corpus}")
            what = known[name] if isinstance(known[name], dict) else {"checksum": known[name]}
            files.append(CorpusFile(name, **what))
        return files

    def files(self, names: Iterable[str]) -> list[CorpusFile]:
        """:meth:`listed`. Raises :class:`UserError` if the user's folder lacks one of them."""
        files = self.listed(names)
        if self.folder is not None:
            for file in files:
                hint = f"download it from {file.url}" if file.url else "put it there"
                plain_or_gz(self.folder, file.name, hint)
        return files


def fetch(source: Source, names: Iterable[str], out: Path) -> dict[str, Path]:
    """Name -> path of each file, with verified checksum; texts and downloads are in ``out``."""
    files, paths = source.files(names), {}
    make_folder(out)
    for file in files:
        path = out / file.name
        if file.url and source.folder is not None:
            path = source.folder / file.name
            file.need_same(path, path, f"fetch it from {file.url}")
        elif file.url:
            with alone(out, math.inf):  # corpora share this folder
                _download_archive(file, path, source)
        elif not path.exists() or file.fault_of(path):
            _take_text(file, path, source)
        say(f"{file.name}: {path.stat().st_size:,} bytes, checked")
        paths[file.name] = path
    return paths


def _download_archive(file: CorpusFile, path: Path, source: Source) -> None:
    if path.is_file():
        return file.need_same(path, path, "remove it to fetch anew")
    part = path.with_name(f"{path.name}.part")
    _download(file.url, part, source, file.size)
    try:
        file.need_same(part, file.url, "run again")
    except UserError:
        part.unlink()
        raise
    part.rename(path)


def _take_text(file: CorpusFile, path: Path, source: Source) -> None:
    if source.folder is not None:
        return _unpack(
            plain_or_gz(source.folder, file.name), file, path, "replace it by the original"
        )
    url = f"{source.entry['url']}/{file.name}.gz"
    part = path.with_name(f"{path.name}.gz.part")
    _download(url, part, source)
    try:
        _unpack(part, file, path, f"downloaded from {url}; run again to fetch anew")
    finally:
        part.unlink()  # wrong content cannot be resumed


def _unpack(packed: Path, file: CorpusFile, path: Path, hint: str) -> None:
    with writing_bytes(path) as text:
        try:
            with opened(packed) as content:
                shutil.copyfileobj(content, text, BLOCK)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"{packed}: cannot be unpacked ({error}); {hint}") from None
        text.flush()
        file.need_same(Path(text.name), packed, hint)


def _download(url: str, part: Path, source: Source, size: int | None = None) -> None:
    """Downloads the rest of ``url`` into ``part``; retries, except for HTTP status 4xx."""
    reason: object = ""
    for attempt in range(source.tries):
        if attempt:
            pause = source.pause * 2 ** (attempt - 1)
            say(f"{part.name}: {reason}; trying again in {pause:.0f} s")
            time.sleep(pause)
        try:
            return _transfer(url, part, size)
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(error, urllib.error.HTTPError):
                reason = f"{error.code} {error.reason}"
                if error.code < 500:
                    break
    raise UserError(f"{url}: download failed ({reason}); run again to continue")


def _transfer(url: str, part: Path, size: int | None) -> None:
    """Appends the rest of ``url`` to ``part``. Raises an error if fewer bytes than known arrive."""
    have = part.stat().st_size if part.exists() else 0
    if size is not None and have >= size:
        return
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # the file is already complete
            return
        raise
    with response:
        have = have if response.status == 206 else 0
        rest = response.headers.get("Content-Length")
        whole = size if rest is None else have + int(rest)
        if size is not None and whole != size:  # for example an HTML page
            raise UserError(f"{url}: the server's file has {whole} bytes, expected {size}")
        progress = Progress(part.name.removesuffix(".part"), "MB")
        with open(part, "ab" if have else "wb") as file:
            while block := response.read(BLOCK):
                file.write(block)
                progress.add(len(block) / 1e6)
            if whole is not None and file.tell() != whole:
                raise OSError(f"{file.tell()} of {whole} bytes arrived")


def extract(archive: Path, out: Path, members: Iterable[str]) -> None:
    """Extracts .tgz members that ``out`` lacks, without folders. Raises UserError if incomplete."""
    every = {name: out / Path(name).name for name in members}
    missing = {name: path for name, path in every.items() if not path.exists()}
    make_folder(out)
    try:
        # "r|": a stream, read only once.
        with gzip.open(archive, "rb") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
            progress = Progress(f"{archive.name}, unpacked", "MB")
            while missing and (entry := tar.next()):
                name = entry.name.removeprefix("./")
                if name in missing and entry.isreg():  # no links
                    with writing_bytes(missing.pop(name)) as file:
                        shutil.copyfileobj(tar.extractfile(entry), file, BLOCK)  # type: ignore[arg-type]
                    say(f"{every[name].name}: {entry.size:,} bytes")
                progress.add(entry.size / 1e6)
                tar.members = []  # type: ignore[attr-defined]  # otherwise it grows with every entry
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{archive}: cannot be unpacked ({error}); replace it") from None
    if missing:
        raise UserError(f"{archive}: holds no {', '.join(missing)}; replace it by the original")
