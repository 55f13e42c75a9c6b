"""Evaluation of one checkpoint on one test set: decoding, scores, and a row.

SacreBLEU compares the text with the original references. Subwords become text as the subword
model next to the data does it: Moses tokens for byte-pair encoding, plain text for SentencePiece.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from ..corpora.binarized import bin_folder, language_pair, need_source
from ..corpora.parallel import read_lines
from ..corpora.subwords import kind_of, to_text
from ..corpora.testset import dataset_of
from ..system.engine import alone
from ..system.errors import UserError, as_utf8
from ..system.files import make_folder, sha256
from ..system.options import need_file
from ..system.progress import say
from .checkpoint import direction_of, read_training
from .generation import (
    Pair,
    Setup,
    TestSet,
    check_options,
    generate,
    of_data,
    of_sacrebleu,
    of_text,
)
from .hypotheses import put_result, source_of
from .options import BEST, as_data, companion, training_of
from .records import Result, refuse_another, system_of
from .requests import EvaluateRequest, Search
from .scores import roles_of, scores

_VALID = "valid"  # split for tuning
# Values that are not part of the names of hypothesis files.
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
    """The scores as a line of text; for a dry run, the command.

    ``own``: options of the command that the user called, for suggestions. Raises UserError also for
    a row of another training, and for a checkpoint that changes meanwhile.
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
        setup = Setup(of_data(data, pair, request.subset), checkpoint, search, folder)
        values = " ".join(f"{lenpen:g}" for lenpen in search.lenpens)
        first = f"# first {_VALID} with each of {values}, then\n" if values else ""
        return first + shlex.join(setup.command())
    make_folder(folder)
    with alone(folder):
        test = _test_set(request, data, pair, folder)
        need_source(test.data, test.subset, pair[0])
        setup = Setup(test, checkpoint, search, folder)
        known = known_before(data, setup, request.system)
        refuse_another(results / f"{known['corpus']}.jsonl", Result, known["hypotheses"], known)
        if search.lenpens:
            setup = replace(setup, search=_tuned(data, setup, known["checkpoint_sha256"]))
            known |= {"lenpen": setup.search.lenpen, "lenpen_tried": setup.search.tried}
        subwords, facts = generate(setup, known["checkpoint_sha256"])
        hypotheses = as_text(data, pair, subwords)
        references = list(read_lines(test.references))
        text = "".join(f"{line}\n" for line in hypotheses)
        words = sum(len(line.split()) for line in hypotheses)
        facts["versions"]["sacrebleu"] = metadata.version("sacrebleu")
        result = Result(
            **known,
            **scores(hypotheses, references),
            **facts,
            words_per_second=round(words / len(hypotheses) * facts["sentences_per_second"], 2),
            evaluation=as_data(setup.command()),
            hypotheses_sha256=hashlib.sha256(text.encode()).hexdigest(),
            roles=roles_of(hypotheses, references, test.references),
        )
        source = source_of(test.references, result.direction)
        rows = put_result(results, result, hypotheses, test.references, source)
    return (
        f"{result.system}\tseed {result.seed}\tBLEU {result.bleu:.2f} {result.bleu_signature}"
        f"\tchrF {result.chrf:.2f} {result.chrf_signature}\t-> {rows}"
    )


def _test_set(request: EvaluateRequest, data: Path, pair: Pair, folder: Path) -> TestSet:
    if request.test_set:
        test = of_sacrebleu(data, pair, request.test_set, folder)
    elif request.source and request.reference:
        sides = request.source, request.reference
        test = of_text(data, pair, *sides, folder, request.test_set_name)
    else:
        test = of_data(data, pair, request.subset)
    return replace(test, name=request.test_set_name or test.name)


def _tuned(data: Path, setup: Setup, content: str) -> Search:
    """The search with the length penalty of the highest BLEU on the validation set, the first of
    equal ones; ``content``: SHA-256 of the checkpoint.
    """
    bleu: dict[float, float] = {}
    pair, search = setup.test.pair, setup.search
    valid = of_data(data, pair, _VALID)
    references = list(read_lines(valid.references))
    for lenpen in search.lenpens:
        own = replace(setup, test=valid, search=replace(search, lenpen=lenpen))
        subwords, _ = generate(own, content)
        bleu[lenpen] = scores(as_text(data, pair, subwords), references)["bleu"]
    best = max(bleu, key=bleu.__getitem__)
    tried = " ".join(f"{lenpen:g}:{value:.2f}" for lenpen, value in bleu.items())
    say(f"length penalty {best:g} of {tried}")
    return replace(search, lenpen=best, tried=tried)


def as_text(data: Path, pair: Pair, hypotheses: Iterable[str]) -> list[str]:
    """Hypotheses in subwords as text; ``data``: of the training, for its subwords."""
    subwords = kind_of(data)
    return [to_text(line, pair[1], subwords) for line in hypotheses]


def hypotheses_name(corpus: str, name: str, seed: int, **how: str | int | float) -> str:
    """Path of hypotheses within the results folder; ``how`` has the keys of USUAL."""
    unusual = [
        f".{key}-{str(how[key]).removesuffix('.pt')}" for key in USUAL if how[key] != USUAL[key]
    ]
    return f"{corpus}/{name}.{seed}{''.join(unusual)}.hyp.txt"


def known_before(data: Path, setup: Setup, system: str) -> dict[str, Any]:
    """Fields of the row that are known before anything is decoded.

    ``system``: its name there; empty: the encoding.
    """
    test, checkpoint, search = setup.test, setup.checkpoint, setup.search
    content = sha256(checkpoint)  # before it is read, so that no replaced file is described
    training = read_training(checkpoint, data)
    corpus, arch = data.absolute().parent.name, training["arch"]
    options, overrides = search.as_data()
    direction = "-".join(test.pair)
    same = {name: vars(search)[name] for name in ("beam", "lenpen", "length_penalty")}
    hypotheses = hypotheses_name(
        corpus,
        system or arch,
        training["seed"],
        **same | ({"lenpen": "tuned"} if search.lenpens else {}),
        subset=test.label,
        checkpoint=checkpoint.name,
        direction="" if test.pair == language_pair(data) else direction,
        options=search.mark,
    )
    known = {
        "system": system or system_of(arch),
        "corpus": corpus,
        "direction": direction,
        "test_set": test.name,
        "options": options,
        "overrides": overrides,
        "checkpoint": checkpoint.name,
        "checkpoint_sha256": content,
        "training": training_of(checkpoint),
        "train_revision": companion(checkpoint, "revision"),
        "hypotheses": hypotheses,
        "references_sha256": sha256(test.references),
        "subwords": kind_of(data),
        "source_mended": test.mended,
        **same,
        **training,
    }
    return {name: as_utf8(each) if isinstance(each, str) else each for name, each in known.items()}
