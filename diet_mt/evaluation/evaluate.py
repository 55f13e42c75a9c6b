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
from dataclasses import dataclass, replace
from pathlib import Path

from ..command_line import need_file
from ..corpora.binarized import bin_folder, language_pair, need_source
from ..corpora.parallel import read_lines
from ..corpora.testset import dataset_of
from ..errors import UserError
from ..files import PLUGIN, make_folder, sha256
from ..stages.child import module, run_child, why
from ..stages.lock import alone
from ..stages.progress import say
from .bleu import score
from .checkpoint import direction_of
from .decoded import Facts, Identity, facts_of, read_decoded, read_facts, write_facts
from .generation_options import Search, check_options
from .kept import sources_beside
from .records import Result, need_place, put_result
from .score import Scored, known_before, make_result, sentences_of
from .sentences import put_counts
from .test_sets import TestSet, of_data, of_sacrebleu, of_text, source_sha256

_VALID = "valid"  # part of the data that chooses


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,+-]*")


@dataclass(frozen=True)
class EvaluateRequest:
    """What to evaluate: ``subset`` of the data, or two text files, or a test set of SacreBLEU.

    Raises UserError for a system whose name cannot be that of a file.
    """

    data: Path  # made by fairseq-preprocess, or the corpus folder with it
    checkpoint: Path
    subset: str
    source: Path | None
    reference: Path | None
    test_set: str
    results: Path  # folder for the record
    system: str  # its name there; empty: the encoding
    test_set_name: str  # there; empty: the test set's own
    dry_run: bool

    def __post_init__(self) -> None:
        if self.system and not _NAME.fullmatch(self.system):
            raise UserError(
                f"--system {self.system}: give letters, digits and . _ , + - alone; it names a file"
            )


def evaluate(asked: EvaluateRequest, search: Search, own: Iterable[str] = ()) -> str:
    """The line that says what came out; of a dry run, the command.

    ``own``: options of the command that the user called, for the nearest name. Raises UserError
    where an argument is wrong, the row is that of another training, another process is at work
    here, decoding fails, or the checkpoint changes meanwhile.
    """
    data, checkpoint, results = bin_folder(asked.data), asked.checkpoint, asked.results
    if results.exists() and not results.is_dir():
        raise UserError(f"--results {results}: not a folder")
    need_file(checkpoint, "checkpoint; train first")
    for path in filter(None, (asked.source, asked.reference)):
        need_file(path)
    check_options(search.options, own)
    pair = direction_of(checkpoint, data, asked.subset)
    folder = checkpoint.parent / "decoded"
    if asked.test_set:
        dataset_of(asked.test_set, "-".join(pair))
    if asked.dry_run and (asked.source or asked.test_set):
        return f"# binarizes the text, then decodes it as with --subset, in {folder}"
    if asked.dry_run:
        command = shlex.join(_command(of_data(data, pair, asked.subset), checkpoint, search))
        each = " ".join(f"{lenpen:g}" for lenpen in search.lenpens)
        first = f"# first {_VALID} with each of {each}, then\n"
        return (first if search.lenpens else "") + command
    make_folder(folder)
    with alone(folder):
        if asked.test_set:
            test = of_sacrebleu(data, pair, asked.test_set, folder)
        elif asked.source and asked.reference:
            test = of_text(data, pair, asked.source, asked.reference, folder)
        else:
            test = of_data(data, pair, asked.subset)
        need_source(test.data, test.subset, pair[0])
        test = replace(test, name=asked.test_set_name or test.name)
        known = known_before(data, checkpoint, test, search, asked.system)
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
        rows = _put(results, result, text, test.references)
    return (
        f"{result.system}\tseed {result.seed}\tBLEU {result.bleu:.2f} "
        f"({result.bleu_mean:.2f} ± {result.bleu_ci:.2f}) {result.bleu_signature}"
        f"\tchrF {result.chrf:.2f} {result.chrf_signature}\t-> {rows}"
    )


def _put(results: Path, result: Result, text: str, references: Path) -> Path:
    """Writes row, hypotheses and sentence counts; returns the file of the row."""
    rows = put_result(results, result, text)
    source = sources_beside(references, result)
    put_counts(rows, [(result, text.split("\n")[:-1])], references, source)
    return rows


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
    penalty = f".{search.length_penalty}" if search.length_penalty != "fairseq" else ""
    how = f"beam{search.beam}.lenpen{search.lenpen:g}{penalty}"
    options = f".options-{search.mark}" if search.mark else ""
    out = folder / f"{checkpoint.name}.{test.label}.{how}{options}"
    identity, facts = _decode(test, checkpoint, search, out)
    decoded = read_decoded(out, out.with_name(f"{out.name}.log"))
    return Scored(test, identity, facts, decoded)


def _command(test: TestSet, checkpoint: Path, search: Search) -> list[str]:
    """fairseq-generate and its words. Multiple 1: translations do not depend on batches, but rates
    do, and are comparable with those of all rows.
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
