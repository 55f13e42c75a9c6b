"""From plain text to the pieces that a masked language model is trained on.

Every stage reads what the one before wrote:

    mlm sentences --out OUT/sentences --train FILE... --valid FILE...   {train,valid}.LANGUAGE
    mlm sample --size N OUT/sentences OUT/sample                    what the pieces are learnt from
    mlm learn --kind wordpiece --size N --out OUT/wordpiece.json OUT/sample
    mlm pieces --tokenizer MODEL --max-length N OUT/sentences OUT/pieces       {train,valid}
    mlm dictionary --tokenizer MODEL OUT/dict.txt

Documents stay apart: ``pieces`` has an empty line behind each, which fairseq's
``--sample-break-mode complete_doc`` takes for its end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ..command_line import run
from ..corpora import pieces
from ..errors import UserError
from ..files import make_folder, write_lines, writing
from ..stages.pool import in_order
from ..stages.progress import Progress, say
from . import sampling, wordpiece
from .documents import inputs, read_documents, write_sentences
from .tokenizer import load_file, write_dictionary_of
from .vocabulary import say_unknown

SPLITS = ("train", "valid")
_RUN = 50  # sentences: so finely is text divided where a part of it is to be repeated
_MARKS = 2  # <s> and </s> of a sentence that has a sequence for itself


def files_of(folder: Path, split: str) -> dict[str, Path]:
    """The files of one split by language, in alphabetical order. Raises UserError without any."""
    found = {path.name.split(".", 1)[1]: path for path in sorted(folder.glob(f"{split}.*"))}
    if not found:
        raise UserError(f"{folder}: holds no {split}.LANGUAGE; remove it and run the recipe again")
    return found


def prepare_sentences(args: argparse.Namespace) -> None:
    """Writes {train,valid}.LANGUAGE, those that are not there yet."""
    make_folder(args.out)
    for split in SPLITS:
        for lang, files in inputs(getattr(args, split), args.language).items():
            out = args.out / f"{split}.{lang}"
            if out.exists():
                say(f"{out.name}: done before")
            else:
                write_sentences(files, out, lang, args.workers)


def sentences_in(file: Path) -> Iterator[str]:
    """All lines but the empty ones."""
    return (line for line in read_documents(file) if line)


def write_sample(folder: Path, out: Path, size: int, alpha: float) -> int:
    """Writes ``size`` training sentences, or as many as there are, of all languages."""
    files = files_of(folder, "train")
    counts = {lang: sum(1 for _ in sentences_in(file)) for lang, file in files.items()}
    size = min(size, sum(counts.values()))

    def chosen() -> Iterator[str]:
        for lang, share in sampling.shares(counts, alpha).items():
            wanted = round(share * size)
            say(f"sample: {wanted:,} sentences of {lang}, from {counts[lang]:,}")
            for number, sentence in enumerate(sentences_in(files[lang])):
                for _ in range(sampling.copies(number, counts[lang], wanted)):
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
        unknown += found.count("<unk>")
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
            if sampling.copies(number, count, wanted) > turn:
                yield from some
                open_document = bool(some[-1])
            elif open_document:
                yield ""
                open_document = False


def write_pieces(args: argparse.Namespace) -> None:
    """Writes {train,valid}, those that are not there yet; reports what was cut or is unknown."""
    make_folder(args.out)
    limit = args.max_length - _MARKS
    if limit < 1:
        raise UserError(f"--max-length {args.max_length}: must be at least {_MARKS + 1}")
    for split in SPLITS:
        out = args.out / split
        if out.exists():
            say(f"{split}: done before")
            continue
        files = files_of(args.sentences, split)
        factors = dict.fromkeys(files, 1.0)
        if split == "train" and len(files) > 1:
            counts = {lang: sum(1 for _ in sentences_in(file)) for lang, file in files.items()}
            factors = sampling.times(counts, args.alpha)
        progress, long, total, unknown = Progress(split), 0, 0, 0
        split_some = partial(split_lines, tokenizer=args.tokenizer, limit=limit)
        with writing(out) as text:
            for lang, file in files.items():
                if len(files) > 1:
                    say(f"{split}: {lang}, {factors[lang]:.2f} times")
                lines = repeated(file, factors[lang])
                for part, cuts, pieces_, strange in in_order(split_some, lines, args.workers):
                    text.writelines(f"{line}\n" for line in part)
                    long, total, unknown = long + cuts, total + pieces_, unknown + strange
                    progress.add(len(part))
        progress.done()
        say_unknown(split, unknown, total)
        say(f"{split}: {long:,} sentences of more than {limit} pieces were cut")


def learn(args: argparse.Namespace) -> None:
    """Learns the pieces from the sample."""
    if args.kind == "wordpiece":
        wordpiece.learn([args.sample], args.out, args.size, cased=args.cased)
    else:
        # Two of fairseq's marks, <pad> and <mask>, are not the model's own.
        options = {"sample": args.sentences, "coverage": args.coverage}
        pieces.learn([args.sample], args.out, args.size - 2, **options)


def dictionary(args: argparse.Namespace) -> None:
    """Writes the dictionary of a tokenizer."""
    write_dictionary_of(load_file(args.tokenizer), args.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="diet_mt.bert.mlm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)

    def command(name: str, body: Callable[[argparse.Namespace], object]) -> Callable[..., object]:
        made = commands.add_parser(name)
        made.set_defaults(body=body)
        return made.add_argument

    add = command("sentences", prepare_sentences)
    add("--train", nargs="+", required=True, metavar="[LANGUAGE:]FILE")
    add("--valid", nargs="+", required=True, metavar="[LANGUAGE:]FILE")
    add("--language", default="en", help="of files given without one (default en)")
    add("--workers", type=int, default=1, help="processes (default 1)")
    add("--out", type=Path, required=True, help="folder to write")
    add = command("sample", lambda args: write_sample(args.source, args.out, args.size, args.alpha))
    add("--size", type=int, default=pieces.SAMPLE, help="sentences (default 3,000,000)")
    add("--alpha", type=float, default=sampling.ALPHA, help="evens out languages (default 0.5)")
    add("source", type=Path)
    add("out", type=Path)
    add = command("learn", learn)
    add("--size", type=int, required=True, help="entries of the whole vocabulary")
    add("--kind", choices=("wordpiece", "spm"), required=True)
    add("--out", type=Path, required=True, help="file to write")
    add("--cased", action="store_true", help="WordPiece: keep capital letters and accents")
    add("--sentences", type=int, default=pieces.SAMPLE, help="SentencePiece: looked at, at most")
    add("--coverage", type=float, default=pieces.COVERAGE, help="SentencePiece: of characters")
    add("sample", type=Path)
    add = command("pieces", write_pieces)
    add("--tokenizer", type=Path, required=True)
    add("--max-length", type=int, required=True, help="of a sequence in pieces, with its marks")
    add("--alpha", type=float, default=sampling.ALPHA, help="evens out languages (default 0.5)")
    add("--workers", type=int, default=1, help="processes (default 1)")
    add("sentences", type=Path)
    add("out", type=Path)
    add = command("dictionary", dictionary)
    add("--tokenizer", type=Path, required=True)
    add("out", type=Path)
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    return run(lambda: args.body(args))


if __name__ == "__main__":
    sys.exit(main())
