"""Documents of plain text, as sentences: one on a line, and an empty line between two documents.

What goes in has a paragraph on a line. Sentences are found by ``sentencex`` (Wikimedia), which has
rules and abbreviations for some 300 languages and no model to download; of the other libraries,
pysbd knows 22 languages and no Czech, and the rest need trained models. Nothing is dropped or
changed but what ``tidy`` mends.
"""

from __future__ import annotations

import glob
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import sentencex

from ..corpora.tidy import tidy
from ..errors import UserError
from ..files import text_lines, writing
from ..stages.pool import in_order
from ..stages.progress import Progress, say

PARAGRAPHS = 200  # handed to a worker at a time
_LANGUAGE = re.compile(r"([a-z]{2,3}(?:-[a-z0-9]+)*):(.+)")


def inputs(words: Iterable[str], language: str) -> dict[str, list[Path]]:
    """``LANGUAGE:FILE`` or ``FILE`` -> the files of each language, in the order given. Raises
    UserError where there is no file, or none that fits a pattern.

    Args:
        words: A file may be a pattern (``mono/cs/*.gz``).
        language: Of files that are given without one.
    """
    found: dict[str, list[Path]] = {}
    for word in words:
        match = _LANGUAGE.fullmatch(word)
        lang, name = match.groups() if match else (language, word)
        files = [name] if Path(name).is_file() else sorted(glob.glob(name))
        if not files:
            raise UserError(f"{name}: no such file; give FILE or LANGUAGE:FILE, as in cs:text.gz")
        found.setdefault(lang, []).extend(map(Path, files))
    return found


def need_text(files: Iterable[Path], name: str, *, whole: bool) -> None:
    """Reads to the end, or up to the first sentence. Raises UserError as ``text_lines``, and where
    there is no sentence: before hours of other work, not after them.
    """
    lines = chain.from_iterable(map(read_documents, files))
    if not any(tidy(line, Counter()) for line in lines):
        raise UserError(f"{name}: its files hold no text; give others")
    if whole:
        deque(lines, maxlen=0)


def sentences(lines: list[str], language: str) -> tuple[list[str], Counter[str]]:
    """The sentences of some paragraphs, an empty one for each line without text; and what ``tidy``
    mended.
    """
    mended: Counter[str] = Counter()
    found: list[str] = []
    for line in lines:
        paragraph = tidy(line, mended)
        parts = (part.strip() for part in sentencex.segment(language, paragraph))
        found.extend([part for part in parts if part] or [""])
    return found, mended


def write_sentences(files: Iterable[Path], out: Path, language: str, workers: int = 1) -> None:
    """Writes the sentences of all files to ``out``; a document ends where its file does, too.
    Raises UserError as ``text_lines``.
    """
    paragraphs = chain.from_iterable(map(read_documents, files))
    progress, mended = Progress(out.name, "sentences"), Counter[str]()
    count, documents, between = 0, 0, True
    with writing(out) as file:
        split = partial(sentences, language=language)
        for part, wrong in in_order(split, paragraphs, workers, PARAGRAPHS):
            mended += wrong
            before = count
            for sentence in part:
                if sentence:
                    if between:
                        file.write("\n" if documents else "")
                        documents += 1
                    file.write(sentence + "\n")
                    count += 1
                between = not sentence
            progress.add(count - before)
    progress.done()
    kinds = [f"{number:,} {name}" for name, number in sorted(mended.items()) if number]
    say(f"{out.name}: {documents:,} documents, {count:,} sentences")
    say(f"{out.name}: mended lines: {', '.join(kinds) or 'none'}")


def read_documents(file: Path) -> Iterator[str]:
    """The lines of a file, and an empty one behind the last document, too. As ``text_lines``."""
    for _, line in text_lines(file):
        yield line
    yield ""
