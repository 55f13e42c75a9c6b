"""The record of a decoding: text again, compared with the untouched references by SacreBLEU.

What the model wrote becomes text as the subword model beside the data says: Moses tokens for
byte-pair encoding, plain text for SentencePiece.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ..corpora.binarized import language_pair
from ..corpora.parallel import read_lines
from ..corpora.subwords import kind_of, to_text
from ..errors import as_utf8
from ..files import sha256
from .bleu import scores
from .checkpoint import read_training
from .commands import portable
from .decoded import Decoded, Facts, Identity
from .generation_options import Search
from .provenance import BEST, beside, command_beside
from .records import Result, system_of
from .roles import roles_of
from .test_sets import TestSet

# What a hypothesis file's name does not mention.
USUAL = {
    "subset": "test",
    "checkpoint": BEST,
    "beam": 10,
    "lenpen": 0.6,
    "length_penalty": "fairseq",
    "direction": "",  # as the data folder has the pair
    "options": "",  # the mark of others
}


@dataclass(frozen=True)
class Scored:
    """A decoding, as the record is to describe it."""

    test: TestSet
    identity: Identity
    facts: Facts
    decoded: Decoded


def sentences_of(data: Path, scored: Scored) -> list[str]:
    """What was decoded, as text; ``data``: what the model was trained on, for its subwords."""
    subwords = kind_of(data)
    return [to_text(line, scored.test.pair[1], subwords) for line in scored.decoded.hypotheses]


def words_per_second(sentences: list[str], decoded: Decoded) -> float:
    """Words of the text, split at spaces, for each second of decoding."""
    words = sum(len(sentence.split()) for sentence in sentences)
    return round(words / len(sentences) * decoded.sentences_per_second, 2)


def hypotheses_name(corpus: str, name: str, seed: int, **how: str | int | float) -> str:
    """Path of a hypothesis file, seen from the results folder; ``how`` with the keys of USUAL."""
    unusual = [
        f".{key}-{str(how[key]).removesuffix('.pt')}" for key in USUAL if how[key] != USUAL[key]
    ]
    return f"{corpus}/{name}.{seed}{''.join(unusual)}.hyp.txt"


def known_before(
    data: Path, checkpoint: Path, test: TestSet, search: Search, system: str
) -> dict[str, Any]:
    """The fields of the record that are known before anything is decoded.

    ``system``: its name there; empty: the encoding. Raises UserError where the checkpoint cannot be
    read.
    """
    content = sha256(checkpoint)  # before it is read, so that no replaced file is described
    training = read_training(checkpoint, data)
    corpus, name = data.absolute().parent.name, system or training.arch
    how: dict[str, str | int | float] = {
        "subset": test.label,
        "checkpoint": checkpoint.name,
        "beam": search.beam,
        "lenpen": "tuned" if search.lenpens else search.lenpen,
        "length_penalty": search.length_penalty,
        "direction": "" if test.pair == language_pair(data) else "-".join(test.pair),
        "options": search.mark,
    }
    known = {
        "system": system or system_of(training.arch),
        "corpus": corpus,
        "direction": "-".join(test.pair),
        "test_set": test.name,
        "beam": search.beam,
        "lenpen": search.lenpen,
        "lenpen_tried": search.tried,
        "length_penalty": search.length_penalty,
        "checkpoint": checkpoint.name,
        "checkpoint_sha256": content,
        "train_command": command_beside(checkpoint),
        "train_revision": beside(checkpoint, "revision"),
        "hypotheses": hypotheses_name(corpus, name, training.seed, **how),
        "references_sha256": sha256(test.references),
        "subwords": kind_of(data),
        "source_mended": test.mended,
        **vars(training),
    }
    return {name: as_utf8(each) if isinstance(each, str) else each for name, each in known.items()}


def make_result(data: Path, known: Mapping[str, Any], scored: Scored) -> tuple[Result, str]:
    """The record of one evaluation and the text of its hypotheses file."""
    sentences = sentences_of(data, scored)
    references = scored.test.references
    expected = list(read_lines(references))
    text = "".join(line + "\n" for line in sentences)
    result = Result(
        sentences_per_second=scored.decoded.sentences_per_second,
        tokens_per_second=scored.decoded.tokens_per_second,
        words_per_second=words_per_second(sentences, scored.decoded),
        sacrebleu=metadata.version("sacrebleu"),
        generate_command=portable(scored.identity.command),
        hypotheses_sha256=hashlib.sha256(text.encode()).hexdigest(),
        roles=roles_of(sentences, expected, references),
        **known,
        **scores(sentences, expected),
        **vars(scored.facts),
    )
    return result, text
