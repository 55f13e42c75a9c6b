"""Rehearses the preparation of WMT18 on made-up text, and says how long each stage takes.

    python -m tools.rehearsal --pairs 1000000 data/rehearsal --subwords bpe > table.md

The archives are laid out as those of WMT18. Word frequencies follow Zipf's law and the number of
different words grows with the text as Heaps found, since time and memory of the codes depend on
both. The most frequent words are real ones, so that the language of a line can be told; the rest is
put together from syllables. A million pairs take ten minutes on two cores, and 4 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np

from diet_mt.command_line import run
from diet_mt.errors import UserError
from diet_mt.files import checksum, write_lines

ROOT = Path(__file__).resolve().parent.parent
FULL = 4_500_000  # pairs of WMT18 German-English
PAIR = ("de", "en")
HELD_OUT = 3000  # sentences of the development set and of the test set
# Share of the pairs in each archive, and where they stand there; as in WMT18.
CORPORA = (
    ("training-parallel-europarl-v7.tgz", "training/europarl-v7.de-en", 0.42),
    ("training-parallel-commoncrawl.tgz", "commoncrawl.de-en", 0.52),
    ("training-parallel-nc-v13.tgz", "training-parallel-nc-v13/news-commentary-v13.de-en", 0.06),
)
# Different words in a million pairs, about as in the real corpora; more pairs have more of them.
_TYPES = {"de": 1_200_000, "en": 500_000}
_HEAPS = 0.6
_MEDIAN, _SPREAD, _LONGEST = 21, 0.6, 200  # words of a sentence, log-normal: 25 on average
_BATCH = 2000  # pairs made at a time

_FREQUENT = {
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als "
    "auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über "
    "einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde wir wenn können "
    "diese ich",
    "en": "the of and to in a is that for it was on are as with be by this have from at not or we "
    "which but an has their will they can also more been its all there were one would our about if "
    "other these what so must than into who no you up some time only when out people could may",
}
_ONSETS = {
    "de": "b br d dr f fl g gr h k kl l m n p r s sch schw sp st t tr v w z",
    "en": "b bl c ch cl d f fr g h j l m n p pr qu r s sh sp st t th tr w",
}
_RHYMES = {
    "de": "a ach al an auf ei ein el en er ich ie iel ig in o ol or u und ung ü ä ö eu",
    "en": "a al an ar e ea ed en er i ic in ing ion ir o ol on oo or ou u ul y ay",
}


def sentences(pairs: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yields so many pairs (German, English): the same ones for the same seed."""
    draw = np.random.default_rng(seed)
    types = {lang: int(_TYPES[lang] * max(pairs / 1e6, 0.01) ** _HEAPS) for lang in PAIR}
    made = 0
    while made < pairs:
        count = min(_BATCH, pairs - made)
        lengths = draw.lognormal(np.log(_MEDIAN), _SPREAD, count).clip(3, _LONGEST).astype(int)
        sides = []
        for lang in PAIR:
            own = (lengths * draw.normal(1.0, 0.08, count)).clip(3, _LONGEST).astype(int)
            # The rank of a word is drawn log-uniformly: its frequency is one over its rank.
            ranks = np.exp(draw.random(own.sum()) * np.log(types[lang])).astype(int) - 1
            words = [_word(int(rank), lang) for rank in ranks]
            ends = np.cumsum(own)
            starts = ends - own
            sides.append([_sentence(words[a:b]) for a, b in zip(starts, ends, strict=True)])
        yield from zip(*sides, strict=True)
        made += count


def _sentence(words: list[str]) -> str:
    first = words[0].capitalize()
    middle = len(words) // 2
    return f"{' '.join([first, *words[1:middle]])}, {' '.join(words[middle:])}."


@lru_cache(maxsize=200_000)
def _word(rank: int, lang: str) -> str:
    """The word of this rank, 0 the most frequent: always the same."""
    frequent = _FREQUENT[lang].split()
    if rank < len(frequent):
        return frequent[rank]
    onsets, rhymes = _ONSETS[lang].split(), _RHYMES[lang].split()
    rest, syllables = rank, list[str]()
    while rest or len(syllables) < 2:
        rest, onset = divmod(rest, len(onsets))
        rest, rhyme = divmod(rest, len(rhymes))
        syllables.append(onsets[onset] + rhymes[rhyme])
    word = "".join(syllables)
    return word.capitalize() if lang == "de" and rank % 2 else word


def write_archives(folder: Path, pairs: int, seed: int = 1) -> None:
    """Writes the five archives, with so many training pairs in all, and ``manifest``."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = sentences(pairs, seed)
    lines = []
    for archive, stem, share in CORPORA:
        count = pairs if archive == CORPORA[-1][0] else round(pairs * share)
        names = [f"{stem}.{lang}" for lang in PAIR]
        sides = zip(*islice(stream, count), strict=True)
        for name, side in zip(names, sides, strict=True):
            write_lines(folder / Path(name).name, side)
        lines.append(_pack(folder, archive, names))
    for kind, archive, year, first in (("dev", "dev.tgz", 2017, 2), ("test", "test.tgz", 2018, 3)):
        lines.append(_pack(folder, archive, _write_sets(folder, kind, year, seed + first)))
    (folder / "manifest").write_text("".join(lines), encoding="utf-8")


def _write_sets(folder: Path, kind: str, year: int, seed: int) -> list[str]:
    """Both directions of a held-out set, which are the same sentences."""
    names = []
    pairs = list(sentences(HELD_OUT, seed))
    for source, target in (PAIR, PAIR[::-1]):
        for side, lang in (("src", source), ("ref", target)):
            texts = [pair[PAIR.index(lang)] for pair in pairs]
            body = "".join(f'<seg id="{n}">{text}</seg>\n' for n, text in enumerate(texts, 1))
            names.append(f"{kind}/newstest{year}-{source}{target}-{side}.{lang}.sgm")
            (folder / Path(names[-1]).name).write_text(f"<doc>\n{body}</doc>\n", encoding="utf-8")
    return names


def _pack(folder: Path, archive: str, names: list[str]) -> str:
    """Moves files into an archive; returns its line in the manifest."""
    path = folder / archive
    with tarfile.open(path, "w:gz", compresslevel=1) as packed:
        for name in names:
            loose = folder / Path(name).name
            packed.add(loose, arcname=name)
            loose.unlink()
    if archive == "test.tgz":
        known = f"-\tmd5:{checksum(path, 'md5')}"
    else:
        known = f"{path.stat().st_size}\t{checksum(path, 'sha256')}"
    return f"{archive}\t{known}\thttp://127.0.0.1:9/{archive}\n"


def prepare(folder: Path, archives: Path, options: Sequence[str]) -> list[tuple[str, float, int]]:
    """``diet-mt prepare wmt18`` on the archives; (name, seconds, lines) of each stage.

    Raises:
        UserError: it fails.
    """
    out = archives.with_name(f"wmt18.{archives.name}")  # of other archives another
    given = ["--from", archives, "--manifest", archives / "manifest", "--out", out]
    command = [sys.executable, "-m", "diet_mt", "prepare", "wmt18", "-".join(PAIR)]
    done = subprocess.run(
        [*command, *map(str, given), "--downloads", str(folder), *options],
        env={**os.environ, "SACREBLEU": str(folder / "sacrebleu"), "PYTHONPATH": str(ROOT)},
        check=False,
    )
    if done.returncode:
        raise UserError(f"the recipe failed with exit status {done.returncode}; see above")
    rows = (out / "stages.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    return [(name, float(s), int(n)) for name, s, n in (row.split("\t") for row in rows)]


def table(stages: Sequence[tuple[str, float, int]], pairs: int) -> Iterator[str]:
    """Markdown: what was measured, and the same in proportion for all pairs."""
    yield f"| stage | {pairs:,} pairs, s | lines | {FULL:,} pairs, min (estimate) |"
    yield "| --- | ---: | ---: | ---: |"
    total = ("all", sum(seconds for _, seconds, _ in stages), 0)
    for name, seconds, lines in (*stages, total):
        estimate = seconds * FULL / pairs / 60
        yield f"| {name} | {seconds:.0f} | {f'{lines:,}' if lines else ''} | {estimate:.0f} |"


def rehearse(folder: Path, pairs: int, options: Sequence[str]) -> None:
    """Raises UserError as ``prepare``."""
    archives = folder / f"archives.{pairs}"
    if not (archives / "manifest").exists():
        print(f"making archives with {pairs:,} pairs", file=sys.stderr, flush=True)
        write_archives(archives, pairs)
    for line in table(prepare(folder, archives, options), pairs):
        print(line)
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\nThe largest process had {peak_mib:,.0f} MiB.")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.rehearsal", description="rehearse the preparation")
    parser.add_argument("folder", type=Path, help="to work in; its archives are used again")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="default 1000000")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of diet-mt prepare wmt18")
    args = parser.parse_args(argv)
    return run(lambda: rehearse(args.folder, args.pairs, args.options))


if __name__ == "__main__":
    sys.exit(main())
