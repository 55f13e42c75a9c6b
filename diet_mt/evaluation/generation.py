"""Decoding of a test set by fairseq-generate, and its output.

The program runs as a process of its own: any of its options may be given, its memory is free
again, and its end is reported where the kernel kills it. An output is known by its content: it
serves again where the same command made it of the same checkpoint and the same sentences.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from ..corpora.binarized import language_pair
from ..errors import UserError
from ..files import PLUGIN, decoded_lines, sha256, writing
from ..stages.child import module, run_child, why
from ..stages.progress import say
from .checkpoint import device
from .fairseq_options import read_options
from .provenance import fairseq_version, revision, today
from .requests import Search
from .test_sets import TestSet, source_sha256

_LANGUAGE = "give the checkpoint of that direction"
_READ = "leave it out, the output is read"
_JOINED = "leave it out, scoring joins the subwords"
# Option that the command sets, or that would change what it reads -> what to do instead.
REFUSED = {
    "--task": "give --length-penalty, which chooses the task",
    "--gen-subset": "give --subset",
    "--path": "give the folder of the checkpoint as second argument, and --checkpoint",
    "--source-lang": _LANGUAGE,
    "--target-lang": _LANGUAGE,
    "-s": _LANGUAGE,
    "-t": _LANGUAGE,
    "--user-dir": "leave it out, the project's own is used",
    "--required-batch-size-multiple": "leave it out, rates are of the same batches for all rows",
    "--log-format": _READ,
    "--log-interval": _READ,
    "--quiet": _READ,
    "--results-path": "leave it out, the output is in decoded/ next to the checkpoint",
    "--post-process": _JOINED,
    "--remove-bpe": _JOINED,
}


def check_options(words: Sequence[str], own: Iterable[str] = ()) -> None:
    """Raises UserError for an option that the command sets itself, or that does not exist.

    ``own``: options of the command that the user gave them to, for the nearest name.
    """
    for word in words:
        given = word.partition("=")[0]
        name = given if given.startswith("--") else given[:2]
        if name in REFUSED:
            raise UserError(f"{name}: {REFUSED[name]}")
    from fairseq.options import get_generation_parser

    read_options(get_generation_parser(), ["data", *words], own)


# The last line but one of fairseq-generate, with or without a date in front.
_SPEED = re.compile(
    r"Translated [\d,]+ sentences \([\d,]+ tokens\) in [\d.]+s "
    r"\((?P<sentences>[\d.]+) sentences/s, (?P<tokens>[\d.]+) tokens/s\)"
)


@dataclass(frozen=True)
class Output:
    """Best hypotheses in subwords, in the order of the corpus, and the rate of decoding."""

    hypotheses: list[str]
    sentences_per_second: float
    tokens_per_second: float


def read_output(output: Path, log: Path) -> Output:
    """The output of fairseq-generate; of n-best lists the first.

    ``output``: its standard output; ``log``: its standard error. Which of them gets the log differs
    between distributions. One file for both would not do: a log line could split a hypothesis.
    Raises UserError where a file is missing, was cut off, or leaves out a sentence.
    """
    best: dict[int, str] = {}
    speed = None
    for _, line in chain(decoded_lines(log), decoded_lines(output)):
        if line.startswith("H-"):
            name, _, text = line.split("\t", 2)
            best.setdefault(int(name[2:]), text)
        elif not line.startswith(("S-", "T-", "D-", "P-", "A-")):
            speed = _SPEED.search(line) or speed
    if speed is None:
        raise UserError(f"{output}: fairseq-generate did not get to its end; run it again")
    missing = next((i for i in range(max(best, default=0) + 1) if i not in best), None)
    if missing is not None:
        raise UserError(
            f"{output}: no hypothesis for sentence {missing} (counted from 0), {len(best)} in all; "
            "decode without --skip-invalid-size-inputs-valid-test"
        )
    return Output(
        hypotheses=[best[i] for i in range(len(best))],
        sentences_per_second=float(speed["sentences"]),
        tokens_per_second=float(speed["tokens"]),
    )


@dataclass(frozen=True)
class Generation:
    """One decoding. ``facts``: fields of ``records.Result`` on where and by what it was done."""

    test: TestSet
    command: str
    checkpoint_sha256: str
    facts: dict[str, Any]
    output: Output


def facts_of(words: Sequence[str]) -> dict[str, Any]:
    """Of a decoding that begins now, with these further options."""
    return {
        "threads": torch.get_num_threads(),
        "device": device(words),
        "date": today(),
        "revision": revision(Path(__file__).parent),
        "versions": {"fairseq": fairseq_version(), "torch": metadata.version("torch")},
    }


def command_of(test: TestSet, checkpoint: Path, search: Search) -> list[str]:
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
    return [*words, *search.options]


def generate(test: TestSet, checkpoint: Path, search: Search, folder: Path) -> Generation:
    """Decodes a test set, unless its output is in ``folder``."""
    penalty = f".{search.length_penalty}" if search.length_penalty != "fairseq" else ""
    how = f"beam{search.beam}.lenpen{search.lenpen:g}{penalty}"
    options = f".options-{search.mark}" if search.mark else ""
    out = folder / f"{checkpoint.name}.{test.label}.{how}{options}"
    facts_file, log, part = (Path(f"{out}.{end}") for end in ("json", "log", "part"))
    words = command_of(test, checkpoint, search)
    identity = [shlex.join(words), sha256(checkpoint), source_sha256(test)]
    facts = _saved_facts(facts_file, identity, out, log) if out.is_file() else None
    if facts:
        say(f"{out} is there already")
    else:
        facts = facts_of(search.options)
        say(f"decoding {test.name} with {checkpoint}")
        out.unlink(missing_ok=True)
        _run(words, part, log)
        # The row is about this decoding, whenever it is scored: first its facts, then the output.
        sums = [sha256(part), sha256(log)]
        with writing(facts_file) as file:
            file.write(json.dumps({"identity": identity, "sha256": sums, "facts": facts}) + "\n")
        part.replace(out)
    return Generation(test, identity[0], identity[1], facts, read_output(out, log))


def _saved_facts(file: Path, identity: list[str], out: Path, log: Path) -> dict[str, Any] | None:
    """Facts of a decoding with this identity and these files; None for any other."""
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        if saved["identity"] != identity:
            return None
        if saved["sha256"] != [sha256(out), sha256(log)]:
            say(f"{out} is not what was decoded")
            return None
        return {name: saved["facts"][name] for name in facts_of([])}
    except (OSError, KeyError, TypeError, ValueError):
        return None


def _run(words: Sequence[str], part: Path, log: Path) -> None:
    started = time.monotonic()

    def tell() -> None:
        with open(part, "rb") as file:
            count = sum(line.startswith(b"H-") for line in file)
        say(f"{count} sentences, {time.monotonic() - started:.0f} s")

    with open(part, "wb") as to, open(log, "wb") as errors:
        status = run_child(module("fairseq_cli.generate", words[1:]), out=to, err=errors, tell=tell)
    if status:
        raise UserError(f"fairseq-generate failed: {why(status, log)}")
