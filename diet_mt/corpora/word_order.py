"""The demo corpus: English sentences and German translations in which word order carries meaning.

German puts the verb second or last and splits it; English says by order who does what to whom. A
model that sees its source as a bag of words cannot tell "the dog sees the cat" from "the cat sees
the dog", nor which adjective belongs to which noun, nor which clause comes first.

Beside ``test.de``, ``test.twins.de`` has what each sentence would be in German with its roles
swapped, or an empty line where they cannot be: translations can be asked who does what to whom.

The same bytes come of the same sizes and seed, everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

from ..files import writing
from ..stages.engine import Preparation, Stage
from .clauses.english import english
from .clauses.german import german
from .clauses.plan import swapped
from .clauses.sample import Sampler
from .parallel import SPLITS
from .settings import TextSettings

SHORTEST, LONGEST = 5, 20  # words in a sentence, on either side
_TWINS = 0.35  # how often a sentence is followed by the one with its roles swapped


def preparation(out: Path, text: TextSettings, sizes: dict[str, int], seed: int) -> Preparation:
    """From no text at all to fairseq's binaries; ``sizes``: pairs of train, valid and test."""
    from .shared_stages import prepared

    pairs = "+".join(str(sizes[split]) for split in SPLITS)
    does = f"{pairs} generated pairs, seed {seed}"
    raw = Stage("raw", does, lambda to: generate(to, sizes, seed))
    return prepared(out, [raw], text, f"pairs={pairs} seed={seed}")


def twins_beside(file: Path) -> Path:
    """``test.twins.de`` of ``test.de``."""
    return file.with_name(f"{file.stem}.twins{file.suffix}")


def stream(seed: int) -> Iterator[tuple[str, str, str]]:
    """Yields (English, German, German with the roles swapped or nothing) without end; neither side
    ever comes twice.
    """
    rng = Random(seed)
    sampler = Sampler(rng)
    seen: set[str] = set()
    while True:
        drawn = [sampler.sentence()]
        twin = swapped(drawn[0])
        if twin is not None and rng.random() < _TWINS:
            drawn.append(twin)
        for sentence in drawn:
            source, target = english(sentence), german(sentence)
            lengths = len(source.split()), len(target.split())
            if min(lengths) < SHORTEST or max(lengths) > LONGEST:
                continue
            if source in seen or target in seen:
                continue
            seen.update((source, target))
            twin = swapped(sentence)
            yield source, target, "" if twin is None else german(twin)


def generate(out: Path, sizes: dict[str, int], seed: int) -> None:
    """Writes ``sizes[split]`` pairs of each split to ``out``; no sentence is in two of them."""
    out.mkdir(parents=True, exist_ok=True)
    pairs = stream(seed)
    # The small splits first: the test set stays the same when the training set grows.
    for split in sorted(sizes, key=SPLITS.index, reverse=True):
        with ExitStack() as stack:
            paths = [out / f"{split}.{lang}" for lang in ("en", "de")]
            paths += [twins_beside(paths[1])] if split == "test" else []
            files = [stack.enter_context(writing(path)) for path in paths]
            for _ in range(sizes[split]):
                for file, text in zip(files, next(pairs), strict=False):  # twins of test alone
                    file.write(text + "\n")
