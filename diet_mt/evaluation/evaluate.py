"""One checkpoint, one test set, one row: decodes, scores, adds the result.

Text is compared with the untouched references by SacreBLEU. Subwords become text as the subword
model next to the data does it: Moses tokens for byte-pair encoding, plain text for SentencePiece.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from ..command_line import need_file
from ..corpora.binarized import bin_folder, language_pair, need_source
from ..corpora.parallel import read_lines
from ..corpora.subwords import kind_of, to_text
from ..corpora.testset import dataset_of
from ..errors import UserError, as_utf8
from ..files import make_folder, sha256
from ..stages.lock import alone
from ..stages.progress import say
from .checkpoint import direction_of, read_training
from .generation import Generation, Output, check_options, command_of, generate
from .hypotheses import put_result, source_of
from .options import parse, portable, words_of
from .provenance import BEST, companion, training_of
from .records import Result, need_place, system_of
from .requests import EvaluateRequest, Search
from .scores import roles_of, score, scores
from .sentences import put_counts
from .test_sets import TestSet, of_data, of_sacrebleu, of_text

_VALID = "valid"  # part of the data that chooses
# Not part of the name of a file of hypotheses.
USUAL = {
    "subset": "test",
    "checkpoint": BEST,
    "beam": 10,
    "lenpen": 0.6,
    "length_penalty": "fairseq",
    "direction": "",  # as the data folder has the pair
    "options": "",  # Search.mark
}


def evaluate(request: EvaluateRequest, search: Search, own: Iterable[str] = ()) -> str:
    """The line to print: the scores; of a dry run, the command.

    ``own``: options of the command that the user called, for the nearest name. Raises UserError
    also for a row of another training, and for a checkpoint that changes meanwhile.
    """
    data, checkpoint, results = bin_folder(request.data), request.checkpoint, request.results
    if results.exists() and not results.is_dir():
        raise UserError(f"--results {results}: not a folder")
    need_file(checkpoint, "checkpoint; train first")
    for path in filter(None, (request.source, request.reference)):
        need_file(path)
    check_options(search.options, own)
    pair = direction_of(checkpoint, data, request.subset)
    folder = checkpoint.parent / "decoded"
    if request.test_set:
        dataset_of(request.test_set, "-".join(pair))
    if request.dry_run and (request.source or request.test_set):
        return f"# binarizes the text, then decodes it as with --subset, in {folder}"
    if request.dry_run:
        command = shlex.join(command_of(of_data(data, pair, request.subset), checkpoint, search))
        each = " ".join(f"{lenpen:g}" for lenpen in search.lenpens)
        first = f"# first {_VALID} with each of {each}, then\n"
        return (first if search.lenpens else "") + command
    make_folder(folder)
    with alone(folder):
        if request.test_set:
            test = of_sacrebleu(data, pair, request.test_set, folder)
        elif request.source and request.reference:
            test = of_text(data, pair, request.source, request.reference, folder)
        else:
            test = of_data(data, pair, request.subset)
        need_source(test.data, test.subset, pair[0])
        test = replace(test, name=request.test_set_name or test.name)
        known = known_before(data, checkpoint, test, search, request.system)
        need_place(results, Result, known["corpus"], known["hypotheses"], known)
        contents = {known["checkpoint_sha256"]}
        if search.lenpens:
            search, decoded = _tuned(data, pair, checkpoint, search, folder)
            contents |= decoded
            known |= {"lenpen": search.lenpen, "lenpen_tried": search.tried}
        generation = generate(test, checkpoint, search, folder)
        contents |= {generation.checkpoint_sha256, sha256(checkpoint)}
        if len(contents) > 1:
            raise UserError(f"{checkpoint}: replaced while it was decoded; evaluate again")
        result, text = make_result(data, known, generation)
        rows = _put(results, result, text, test.references)
    return (
        f"{result.system}\tseed {result.seed}\tBLEU {result.bleu:.2f} "
        f"({result.bleu_mean:.2f} ± {result.bleu_ci:.2f}) {result.bleu_signature}"
        f"\tchrF {result.chrf:.2f} {result.chrf_signature}\t-> {rows}"
    )


def _put(results: Path, result: Result, text: str, references: Path) -> Path:
    """Writes row, hypotheses and sentence counts; returns the file of the row."""
    rows = put_result(results, result, text)
    source = source_of(references, result)
    put_counts(rows, [(result, text.split("\n")[:-1])], references, source)
    return rows


def _tuned(
    data: Path, pair: tuple[str, str], checkpoint: Path, search: Search, folder: Path
) -> tuple[Search, set[str]]:
    """The search with the length penalty of the highest BLEU on the validation set, the first of
    equal ones; and the checksums of the checkpoints that were decoded.
    """
    bleu: dict[float, float] = {}
    contents = set()
    valid = of_data(data, pair, _VALID)
    references = list(read_lines(valid.references))
    for lenpen in search.lenpens:
        generation = generate(valid, checkpoint, replace(search, lenpen=lenpen), folder)
        bleu[lenpen] = score(sentences_of(data, generation), references).bleu
        contents.add(generation.checkpoint_sha256)
    best = max(bleu, key=bleu.__getitem__)
    tried = " ".join(f"{lenpen:g}:{value:.2f}" for lenpen, value in bleu.items())
    say(f"length penalty {best:g} of {tried}")
    return replace(search, lenpen=best, tried=tried), contents


def sentences_of(data: Path, generation: Generation) -> list[str]:
    """The hypotheses as text; ``data``: of the training, for its subwords."""
    subwords, language = kind_of(data), generation.test.pair[1]
    return [to_text(line, language, subwords) for line in generation.output.hypotheses]


def words_per_second(sentences: list[str], output: Output) -> float:
    """Words of the text, split at spaces, for each second of decoding."""
    words = sum(len(sentence.split()) for sentence in sentences)
    return round(words / len(sentences) * output.sentences_per_second, 2)


def hypotheses_name(corpus: str, name: str, seed: int, **how: str | int | float) -> str:
    """Path of hypotheses, seen from the results folder; ``how`` has the keys of USUAL."""
    unusual = [
        f".{key}-{str(how[key]).removesuffix('.pt')}" for key in USUAL if how[key] != USUAL[key]
    ]
    return f"{corpus}/{name}.{seed}{''.join(unusual)}.hyp.txt"


def known_before(
    data: Path, checkpoint: Path, test: TestSet, search: Search, system: str
) -> dict[str, Any]:
    """Fields of the row that are known before anything is decoded.

    ``system``: its name there; empty: the encoding.
    """
    content = sha256(checkpoint)  # before it is read, so that no replaced file is described
    training = read_training(checkpoint, data)
    corpus, name = data.absolute().parent.name, system or training.arch
    options, overrides = search.as_data()
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
        "options": options,
        "overrides": overrides,
        "checkpoint": checkpoint.name,
        "checkpoint_sha256": content,
        "training": training_of(checkpoint),
        "train_revision": companion(checkpoint, "revision"),
        "hypotheses": hypotheses_name(corpus, name, training.seed, **how),
        "references_sha256": sha256(test.references),
        "subwords": kind_of(data),
        "source_mended": test.mended,
        **vars(training),
    }
    return {name: as_utf8(each) if isinstance(each, str) else each for name, each in known.items()}


def make_result(data: Path, known: Mapping[str, Any], generation: Generation) -> tuple[Result, str]:
    """The row of one evaluation, and the text of its file of hypotheses."""
    sentences = sentences_of(data, generation)
    output, references = generation.output, generation.test.references
    expected = list(read_lines(references))
    text = "".join(line + "\n" for line in sentences)
    versions = {**generation.facts["versions"], "sacrebleu": metadata.version("sacrebleu")}
    result = Result(
        sentences_per_second=output.sentences_per_second,
        tokens_per_second=output.tokens_per_second,
        words_per_second=words_per_second(sentences, output),
        evaluation=parse(words_of(portable(generation.command))),
        hypotheses_sha256=hashlib.sha256(text.encode()).hexdigest(),
        roles=roles_of(sentences, expected, references),
        **known,
        **scores(sentences, expected),
        **{**generation.facts, "versions": versions},
    )
    return result, text
