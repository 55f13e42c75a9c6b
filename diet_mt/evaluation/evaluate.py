"""One checkpoint, one test set, one row: decodes by fairseq-generate, scores, keeps the result.

What was decoded is known by its content: decoding is skipped where its output is there, as it was
made by the same command from the same checkpoint and the same sentences; and a row is written only
where the checkpoint is still the one that was decoded.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..command_line import need_file
from ..corpora.binarized import bin_folder, language_pair, need_source
from ..corpora.parallel import read_lines
from ..errors import UserError
from ..files import PLUGIN, make_folder, sha256
from ..stages.child import module, run_child, why
from ..stages.lock import alone
from ..stages.progress import say
from .bleu import score
from .checkpoint import direction_of
from .decoded import Facts, Identity, facts_of, read_decoded, read_facts, write_facts
from .generation_options import as_text, check_options, mark_of
from .records import need_place, put_result
from .score import Scored, known_before, make_result, sentences_of
from .test_sets import TestSet, need_sacrebleu, of_data, of_sacrebleu, of_text, source_sha256

_VALID = "valid"  # part of the data that chooses


@dataclass(frozen=True)
class Search:
    """How to decode. Scores are divided by length^lenpen or, with ``gnmt``, as in the paper, by
    ((5 + length) / 6)^lenpen.
    """

    beam: int
    lenpen: float
    length_penalty: str
    max_tokens: int  # source tokens of a batch
    lenpens: tuple[float, ...]  # of which the validation set chooses the lenpen
    tried: str = ""  # "0:33.1 0.6:34.0": what it has chosen from, with its BLEU
    options: list[str] = field(default_factory=list)  # more of fairseq-generate's


@dataclass(frozen=True)
class Wanted:
    """What to evaluate: ``subset`` of the data, or two text files, or a test set of SacreBLEU."""

    subset: str = ""
    source: Path | None = None
    reference: Path | None = None
    test_set: str = ""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,+-]*")


@dataclass(frozen=True)
class Names:
    """In the record; empty: the encoding, and the test set's own.

    Raises UserError for a system whose name cannot be that of a file.
    """

    system: str = ""
    test_set: str = ""

    def __post_init__(self) -> None:
        if self.system and not _NAME.fullmatch(self.system):
            raise UserError(
                f"--system {self.system}: give letters, digits and . _ , + - alone; it names a file"
            )


def evaluate(
    data: Path,
    checkpoint: Path,
    wanted: Wanted,
    search: Search,
    *,
    results: Path,
    names: Names,
    dry_run: bool = False,
    own: Iterable[str] = (),
) -> str:
    """The line that says what came out; of a dry run, the command.

    ``data``: made by fairseq-preprocess, or the corpus folder with it; ``own``: options of the
    command that the user called, for the nearest name. Raises UserError where an argument is wrong,
    the row is that of another training, another process is at work here, decoding fails, or the
    checkpoint changes meanwhile.
    """
    if results.exists() and not results.is_dir():
        raise UserError(f"--results {results}: not a folder")
    data = bin_folder(data)
    need_file(checkpoint, "checkpoint; train first")
    for path in filter(None, (wanted.source, wanted.reference)):
        need_file(path)
    check_options(search.options, own)
    pair = direction_of(checkpoint, data, wanted.subset)
    folder = checkpoint.parent / "decoded"
    if wanted.test_set:
        need_sacrebleu(wanted.test_set, pair)
    if dry_run and (wanted.source or wanted.test_set):
        return f"# binarizes the text, then decodes it as with --subset, in {folder}"
    if dry_run:
        command = shlex.join(_command(of_data(data, pair, wanted.subset), checkpoint, search))
        each = " ".join(f"{lenpen:g}" for lenpen in search.lenpens)
        first = f"# first {_VALID} with each of {each}, then\n"
        return (first if search.lenpens else "") + command
    make_folder(folder)
    with alone(folder):
        if wanted.test_set:
            test = of_sacrebleu(data, pair, wanted.test_set, folder)
        elif wanted.source and wanted.reference:
            test = of_text(data, pair, wanted.source, wanted.reference, folder)
        else:
            test = of_data(data, pair, wanted.subset)
        need_source(test.data, test.subset, pair[0])
        known = known_before(data, checkpoint, test, search, names)
        need_place(results, known)
        contents = {known["checkpoint_sha256"]}
        if search.lenpens:
            search, decoded = _tuned(data, pair, checkpoint, search, folder)
            contents |= decoded
            known |= {"lenpen": search.lenpen, "lenpen_tried": search.tried}
        scored = _scored(test, checkpoint, search, folder)
        contents |= {scored.identity.checkpoint_sha256, sha256(checkpoint)}
        if len(contents) > 1:
            raise UserError(f"{checkpoint}: replaced while it was decoded; evaluate again")
        result, text = make_result(data, known, scored)
        rows = put_result(results, result, text)
    return (
        f"{result.system}\tseed {result.seed}\tBLEU {result.bleu:.2f} "
        f"({result.bleu_mean:.2f} ± {result.bleu_ci:.2f}) {result.bleu_signature}"
        f"\tchrF {result.chrf:.2f} {result.chrf_signature}\t-> {rows}"
    )


def _tuned(
    data: Path, pair: tuple[str, str], checkpoint: Path, search: Search, folder: Path
) -> tuple[Search, set[str]]:
    """The search with the length penalty that gives the highest BLEU on the validation set, of
    equal ones the first; and the checksums of what was decoded.
    """
    found: dict[float, float] = {}
    contents = set()
    valid = of_data(data, pair, _VALID)
    references = list(read_lines(valid.references))
    for lenpen in search.lenpens:
        scored = _scored(valid, checkpoint, replace(search, lenpen=lenpen), folder)
        found[lenpen] = score(sentences_of(data, scored), references).bleu
        contents.add(scored.identity.checkpoint_sha256)
    best = max(found, key=found.__getitem__)
    tried = " ".join(f"{lenpen:g}:{bleu:.2f}" for lenpen, bleu in found.items())
    say(f"length penalty {best:g} of {tried}")
    return replace(search, lenpen=best, tried=tried), contents


def _scored(test: TestSet, checkpoint: Path, search: Search, folder: Path) -> Scored:
    """What a test set becomes, decoded unless that is there."""
    mark = mark_of(as_text(search.options))
    penalty = f".{search.length_penalty}" if search.length_penalty != "fairseq" else ""
    how = f"beam{search.beam}.lenpen{search.lenpen:g}{penalty}"
    options = f".options-{mark}" if mark else ""
    out = folder / f"{checkpoint.name}.{test.label}.{how}{options}"
    identity, facts = _decode(test, checkpoint, search, out)
    decoded = read_decoded(out, out.with_name(f"{out.name}.log"))
    return Scored(test, search, identity, facts, decoded)


def _command(test: TestSet, checkpoint: Path, search: Search) -> list[str]:
    """fairseq-generate and its words. Multiple 1: one distribution of fairseq drops the last
    sentences otherwise.
    """
    words = ["fairseq-generate", str(test.data), "--user-dir", str(PLUGIN)]
    words += ["--path", str(checkpoint), "--beam", str(search.beam)]
    words += ["--lenpen", f"{search.lenpen:g}", "--gen-subset", test.subset]
    words += ["--max-tokens", str(search.max_tokens), "--required-batch-size-multiple", "1"]
    words += ["--log-format", "simple", "--log-interval", "5"]
    if test.pair != language_pair(test.data, test.subset):
        words += ["-s", test.pair[0], "-t", test.pair[1]]
    if search.length_penalty != "fairseq":
        words += ["--task", "diet_translation", "--length-penalty", search.length_penalty]
    return words + search.options


def _decode(test: TestSet, checkpoint: Path, search: Search, out: Path) -> tuple[Identity, Facts]:
    """Makes ``out``, ``out.log`` and ``out.json``, unless they are there and of the same."""
    words = _command(test, checkpoint, search)
    identity = Identity(shlex.join(words), sha256(checkpoint), source_sha256(test))
    facts_file, log, part = (Path(f"{out}.{end}") for end in ("json", "log", "part"))
    if out.is_file() and facts_file.is_file():
        found, facts, is_same = read_facts(facts_file, (out, log))
        if found == identity and is_same:
            say(f"{out} is there already")
            return identity, facts
        if found == identity:
            say(f"{out} is not what was decoded")
    facts = facts_of(search.options)
    say(f"decoding {test.name} with {checkpoint}")
    out.unlink(missing_ok=True)
    started = time.monotonic()

    def tell() -> None:
        with open(part, "rb") as file:
            count = sum(line.startswith(b"H-") for line in file)
        say(f"{count} sentences, {time.monotonic() - started:.0f} s")

    with open(part, "wb") as to, open(log, "wb") as errors:
        status = run_child(module("fairseq_cli.generate", words[1:]), out=to, err=errors, tell=tell)
    if status:
        raise UserError(f"fairseq-generate failed: {why(status, log)}")
    # The row is about this decoding, whenever it is scored: first what it was, then the output.
    write_facts(facts_file, identity, facts, (part, log))
    part.replace(out)
    return identity, facts
