"""From plain text to the pieces that a masked language model is trained on.

Documents stay apart: ``pieces`` has an empty line behind each, which fairseq's
``--sample-break-mode complete_doc`` takes for its end.

How much there is of each language is less unequal than the text itself. Lample and Conneau (2019),
arXiv:1901.07291, section 3.1: with a share p of all sentences, a language is drawn with a
probability proportional to p ** alpha, alpha = 0.5, for the vocabulary as for training. Here
nothing is drawn: what is wanted n times of c is taken evenly, again and again where n is more than
c, so that the same text always gives the same corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from ..corpora.dictionary import UNKNOWN
from ..errors import UserError
from ..files import make_folder, write_lines, writing
from ..stages.pool import in_order
from ..stages.progress import Progress, say
from .documents import read_documents, write_sentences
from .tokenizer import load_file
from .vocabulary import say_unknown

SPLITS = ("train", "valid")
_RUN = 50  # sentences: so finely is text divided where a part of it is to be repeated
_MARKS = 2  # <s> and </s> of a sentence that has a sequence for itself
SHORTEST = _MARKS + 1  # sequence


def shares(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """The share of each language, 0 to 1, from how many sentences there are of each.

    Args:
        alpha: 0 to 1. 1: as they are; 0: all the same.
    """
    total = sum(counts.values())
    weights = {lang: (count / total) ** alpha for lang, count in counts.items()}
    return {lang: weight / sum(weights.values()) for lang, weight in weights.items()}


def times(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """How often each language is to be repeated for these shares: the least so once."""
    wanted = shares(counts, alpha)
    factors = {lang: wanted[lang] / count for lang, count in counts.items()}
    return {lang: factor / min(factors.values()) for lang, factor in factors.items()}


def copies(number: int, count: int, wanted: int) -> int:
    """How often item ``number``, from 0, of ``count`` is taken so that ``wanted`` come out."""
    return (number + 1) * wanted // count - number * wanted // count


def files_of(folder: Path, split: str) -> dict[str, Path]:
    """The files of one split by language, in alphabetical order. Raises UserError without any."""
    found = {path.name.split(".", 1)[1]: path for path in sorted(folder.glob(f"{split}.*"))}
    if not found:
        raise UserError(f"{folder}: holds no {split}.LANGUAGE; remove it and prepare it again")
    return found


def prepare_sentences(
    files: Mapping[str, Mapping[str, list[Path]]], folder: Path, workers: int = 1
) -> None:
    """Writes {train,valid}.LANGUAGE, those that are not there yet.

    Args:
        files: Of each split, by language.
    """
    make_folder(folder)
    for split, of_language in files.items():
        for lang, some in of_language.items():
            out = folder / f"{split}.{lang}"
            if out.exists():
                say(f"{out.name}: done before")
            else:
                write_sentences(some, out, lang, workers)


def sentences_in(file: Path) -> Iterator[str]:
    """All lines but the empty ones."""
    return (line for line in read_documents(file) if line)


def write_sample(folder: Path, out: Path, size: int, alpha: float) -> int:
    """Writes ``size`` training sentences, or as many as there are, of all languages."""
    files = files_of(folder, "train")
    counts = {lang: sum(1 for _ in sentences_in(file)) for lang, file in files.items()}
    size = min(size, sum(counts.values()))

    def chosen() -> Iterator[str]:
        for lang, share in shares(counts, alpha).items():
            wanted = round(share * size)
            say(f"sample: {wanted:,} sentences of {lang}, from {counts[lang]:,}")
            for number, sentence in enumerate(sentences_in(files[lang])):
                for _ in range(copies(number, counts[lang], wanted)):
                    yield sentence

    return write_lines(out, chosen())


def cut(found: list[str], limit: int, begins_word: Callable[[str], bool]) -> list[list[str]]:
    """Pieces in parts of at most ``limit``, cut where a word begins, or within one that is longer.

    Every part but the last is as long as can be.
    """
    parts = []
    while len(found) > limit:
        ends = (end for end in range(limit, 0, -1) if begins_word(found[end]))
        end = next(ends, limit)
        parts.append(found[:end])
        found = found[end:]
    return [*parts, found] if found else parts


def split_lines(lines: list[str], tokenizer: Path, limit: int) -> tuple[list[str], int, int, int]:
    """Lines of pieces, no longer than ``limit``; how many were cut; all pieces; unknown ones.

    An empty line stays one. A sentence of which no piece is left (control characters alone) goes.
    """
    made = load_file(tokenizer)
    out: list[str] = []
    long = total = unknown = 0
    for line in lines:
        found = made.pieces(line)
        parts = cut(found, limit, made.begins_word)
        long += len(parts) > 1
        total += len(found)
        unknown += found.count(UNKNOWN)
        out.extend([" ".join(part) for part in parts] if line else [""])
    return out, long, total, unknown


def runs(file: Path) -> Iterator[list[str]]:
    """The documents of a file in runs of at most _RUN sentences; the last of each ends in an empty
    line.
    """
    found: list[str] = []
    for line in read_documents(file):
        if len(found) == _RUN and line:
            yield found
            found = []
        found.append(line)
        if not line:
            yield found
            found = []
    if found:
        yield found


def repeated(file: Path, factor: float) -> Iterator[str]:
    """The text of a file as often as ``factor`` says: whole passes over it, and one over runs of
    sentences that are evenly chosen; where one is left out, a document ends.

    Pass after pass, so that a document of any length is read as a stream.
    """
    if factor <= 1:
        yield from read_documents(file)
        return
    count = sum(1 for _ in runs(file))
    wanted = round(count * factor)
    for turn in range(-(-wanted // count)):
        open_document = False
        for number, some in enumerate(runs(file)):
            if copies(number, count, wanted) > turn:
                yield from some
                open_document = bool(some[-1])
            elif open_document:
                yield ""
                open_document = False


def write_pieces(
    sentences: Path, folder: Path, tokenizer: Path, max_length: int, alpha: float, workers: int = 1
) -> None:
    """Writes {train,valid}, those that are not there yet; reports what was cut or is unknown.

    Args:
        max_length: Pieces of a sequence, with its two marks.
        alpha: As ``shares`` has it.
    """
    make_folder(folder)
    limit = max_length - _MARKS
    for split in SPLITS:
        out = folder / split
        if out.exists():
            say(f"{split}: done before")
            continue
        files = files_of(sentences, split)
        factors = dict.fromkeys(files, 1.0)
        if split == "train" and len(files) > 1:
            counts = {lang: sum(1 for _ in sentences_in(file)) for lang, file in files.items()}
            factors = times(counts, alpha)
        progress, long, total, unknown = Progress(split), 0, 0, 0
        split_some = partial(split_lines, tokenizer=tokenizer, limit=limit)
        with writing(out) as text:
            for lang, file in files.items():
                if len(files) > 1:
                    say(f"{split}: {lang}, {factors[lang]:.2f} times")
                lines = repeated(file, factors[lang])
                for part, cuts, pieces_, strange in in_order(split_some, lines, workers):
                    text.writelines(f"{line}\n" for line in part)
                    long, total, unknown = long + cuts, total + pieces_, unknown + strange
                    progress.add(len(part))
        progress.done()
        say_unknown(split, unknown, total)
        say(f"{split}: {long:,} sentences of more than {limit} pieces were cut")
