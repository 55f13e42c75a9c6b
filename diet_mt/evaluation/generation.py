"""Test sets, their decoding by fairseq-generate, and its output.

Names of outputs have a checksum of the command, the checkpoint and the sentences: the same
decoding is done once.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import shlex
import shutil
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from ..corpora import testset
from ..corpora.binarized import language_pair, preprocess
from ..corpora.clean import is_cleaned, mended_sources, mended_words, tidy_sources
from ..corpora.parallel import SECOND_TEST, read_lines, read_sides
from ..corpora.subwords import from_text
from ..system.errors import UserError, as_utf8
from ..system.files import PLUGIN, lines_in, make_folder, sha256, write_lines, write_text
from ..system.progress import Progress, say
from .checkpoint import device
from .fairseq_options import quiet, read_options
from .options import fairseq_version, revision, today
from .requests import Search

Pair = tuple[str, str]  # source and target language
# Option that the command sets, or that would change its input -> its replacement.
REFUSED = {
    "--task": "--length-penalty",
    "--gen-subset": "--subset",
    "--path": "--checkpoint",
    **dict.fromkeys(("--source-lang", "--target-lang", "-s", "-t"), "another checkpoint"),
    **dict.fromkeys(("--user-dir", "--required-batch-size-multiple", "--results-path"), ""),
    **dict.fromkeys(("--log-format", "--log-interval", "--quiet"), ""),
    **dict.fromkeys(("--post-process", "--remove-bpe"), ""),
}
# The last log message of fairseq-generate.
_SPEED = re.compile(
    r"Translated [\d,]+ sentences \([\d,]+ tokens\) in [\d.]+s "
    r"\((?P<sentences>[\d.]+) sentences/s, (?P<tokens>[\d.]+) tokens/s\)"
)


def check_options(words: Sequence[str], own: Iterable[str] = ()) -> None:
    """Raises UserError for an option that the command sets itself, or that does not exist.

    ``own``: options of the command that the user gave them to, for suggestions.
    """
    from fairseq.options import get_generation_parser

    for word in words:
        given = word.partition("=")[0]
        name = given if given.startswith("--") else given[:2]
        if name in REFUSED:
            hint = f"; give {REFUSED[name]}" if REFUSED[name] else ""
            raise UserError(f"{name}: set by diet-mt evaluate{hint}")
    task = ["--task", "diet_translation"]
    read_options(get_generation_parser(), ["data", *task, *words], own)


@dataclass(frozen=True)
class TestSet:
    """``data`` is a binarized folder, with the source sentences at least, under ``subset``."""

    __test__ = False  # no tests for pytest

    data: Path
    pair: Pair
    subset: str
    references: Path
    label: str  # in names of files
    name: str  # in the row
    mended: str = ""  # source lines that normalization changed, "3 lines, rules 1"


def of_data(data: Path, pair: Pair, subset: str) -> TestSet:
    """A split of the data, with references DATA/../raw/SUBSET.LANG. ``subset``: its name; empty:
    ``subset_of`` the pair. Raises UserError for missing references.
    """
    subset = subset or subset_of(data, pair)
    is_reverse = pair != language_pair(data, subset)
    folder = data.absolute().parent
    references = folder / "raw" / f"{subset}.{pair[1]}"
    if not references.is_file():
        raise UserError(
            f"{references}: missing; scores need the original text; prepare the data again"
        )
    mended = mended_sources(folder, subset) if is_reverse == (subset == SECOND_TEST) else ""
    return TestSet(data, pair, subset, references, subset, f"{folder.name} {subset}", mended)


def subset_of(data: Path, pair: Pair) -> str:
    """The test set for a checkpoint of the direction ``pair``.

    SacreBLEU's sets need not hold the same text in both directions. Where they do not, preparation
    keeps that of the reverse direction as ``test1``, and a score on the other one would not be that
    of the test set that the row names.
    """
    is_reverse = pair != language_pair(data, "test")
    return SECOND_TEST if is_reverse and any(data.glob(f"{SECOND_TEST}.*")) else "test"


def of_text(
    data: Path, pair: Pair, source: Path, reference: Path, folder: Path, name: str = ""
) -> TestSet:
    """A pair of text files, one sentence per line, binarized in ``folder``; ``name``: in names of
    files (default: that of the source).
    """
    sources, _ = read_sides(source, reference)
    mark = hashlib.sha256("\n".join(sources).encode()).hexdigest()[:8]
    label = f"{_label(name or source.stem)}-{mark}"
    test = TestSet(data, pair, "test", reference, label, reference.name)
    return _binarized(test, sources, folder)


def of_sacrebleu(data: Path, pair: Pair, name: str, folder: Path) -> TestSet:
    """A test set of SacreBLEU, cached or downloaded, binarized in ``folder``."""
    sources, lines = testset.sentences(name, "-".join(pair))
    references = folder / f"{_label(name)}.{'-'.join(pair)}" / f"reference.{pair[1]}"
    test = TestSet(data, pair, "test", references, _label(name), name)
    test = _binarized(test, sources, folder)
    write_lines(references, lines)
    return test


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _binarized(test: TestSet, lines: list[str], folder: Path) -> TestSet:
    """A test set with source sentences ``lines``, normalized if the training text was, split by the
    subword model of its data, and binarized. Reuses the files of the same sentences.
    """
    data, pair, mended = test.data, test.pair, ""
    if is_cleaned(data.absolute().parent):
        lines, count = tidy_sources(lines)
        mended = mended_words(count)
    place = folder / f"{test.label}.{'-'.join(pair)}"
    made, text = place / "bin", place / f"test.{pair[0]}"
    split = from_text(lines, pair[0], data)
    if not (made.is_dir() and text.is_file() and list(read_lines(text)) == split):
        shutil.rmtree(place, ignore_errors=True)
        make_folder(place)
        write_lines(text, split)
        part = place / "bin.part"
        words = ["--source-lang", pair[0], "--target-lang", pair[1], "--only-source"]
        words += ["--srcdict", str(data / f"dict.{pair[0]}.txt")]
        with TemporaryDirectory() as copy:  # fairseq cuts --testpref at commas of a system's name
            shutil.copy(text, copy)
            preprocess([*words, "--testpref", f"{copy}/test"], part, place / "preprocess.log")
        for lang in pair:
            shutil.copyfile(data / f"dict.{lang}.txt", part / f"dict.{lang}.txt")
        os.replace(part, made)
    return replace(test, data=made, mended=mended)


def source_sha256(test: TestSet) -> str:
    """Checksum of the binarized source sentences, for either order of the pair."""
    own = "-".join(language_pair(test.data, test.subset))
    stem = test.data / f"{test.subset}.{own}.{test.pair[0]}"
    files = [Path(f"{stem}.{suffix}") for suffix in ("bin", "idx")]
    digests = "".join(sha256(file) for file in files if file.is_file())
    return hashlib.sha256(digests.encode()).hexdigest()


@dataclass(frozen=True)
class Setup:
    """Test set, checkpoint and search of a decoding; outputs are in ``folder``."""

    test: TestSet
    checkpoint: Path
    search: Search
    folder: Path

    def command(self) -> list[str]:
        """Words of the command. The batch size multiple changes only rates, which are comparable
        if it is the same in all rows.
        """
        test, search = self.test, self.search
        words = ["fairseq-generate", str(test.data), "--user-dir", str(PLUGIN)]
        words += ["--path", str(self.checkpoint), "--beam", str(search.beam)]
        words += ["--lenpen", f"{search.lenpen:g}", "--gen-subset", test.subset]
        words += ["--max-tokens", str(search.max_tokens), "--required-batch-size-multiple", "1"]
        words += ["--log-format", "simple", "--log-interval", "5"]
        if test.pair != language_pair(test.data, test.subset):
            words += ["-s", test.pair[0], "-t", test.pair[1]]
        if search.length_penalty != "fairseq" or "--int8" in search.options:
            words += ["--task", "diet_translation", "--length-penalty", search.length_penalty]
        return [*words, *search.options]


class _Output(io.StringIO):
    """Receives the text that fairseq-generate prints, and shows the progress.

    fairseq's search can be replaced by options and tasks, so that this text is the only form that
    all hypotheses have.
    """

    def __init__(self, name: str, sentences: int) -> None:
        super().__init__()
        self.progress = Progress(f"decoding {name}", "sentences", sentences)

    def write(self, text: str) -> int:
        self.progress.add(text.startswith("S-"))
        return super().write(text)


class _Rates(logging.Handler):
    """Sentences and tokens per second, from the log of fairseq-generate."""

    rates: dict[str, float]

    def emit(self, record: logging.LogRecord) -> None:
        if speed := _SPEED.search(record.getMessage()):
            self.rates = {
                f"{unit}_per_second": float(rate) for unit, rate in speed.groupdict().items()
            }


def read_output(text: str) -> list[str]:
    """The hypotheses in the output of fairseq-generate; the first ones of n-best lists. Raises
    UserError for a missing sentence.
    """
    best: dict[int, str] = {}
    for line in text.split("\n"):
        if line.startswith("H-"):
            name, _, hypothesis = line.split("\t", 2)
            best.setdefault(int(name[2:]), hypothesis)
    missing = next((i for i in range(max(best, default=0) + 1) if i not in best), None)
    if missing is not None:
        raise UserError(
            f"no hypothesis for sentence {missing} (counted from 0), {len(best)} in all: too long "
            "for the model, or skipped by --skip-invalid-size-inputs-valid-test; split the sentence"
        )
    return [best[i] for i in range(len(best))]


def generate(setup: Setup, content: str) -> tuple[list[str], dict[str, Any]]:
    """The best hypotheses of a test set, in subwords and corpus order, and facts of the decoding as
    fields of ``records.Result``. Reuses saved output.

    ``content``: SHA-256 of the checkpoint. Raises UserError if the checkpoint changes meanwhile.
    """
    test, words = setup.test, setup.command()
    identity = as_utf8("\n".join([shlex.join(words), content, source_sha256(test)]))
    mark = hashlib.sha256(identity.encode()).hexdigest()[:16]
    out = setup.folder / f"{setup.checkpoint.name}.{test.label}.{mark}"
    done = Path(f"{out}.json")
    if done.is_file():
        say(f"{done}: exists, not decoded again")
        saved = json.loads(done.read_text(encoding="utf-8"))
        return saved["hypotheses"], saved["facts"]
    facts = {
        "threads": torch.get_num_threads(),
        "device": device(setup.search.options),
        "date": today(),
        "revision": revision(Path(__file__).parent),
        "versions": {"fairseq": fairseq_version(), "torch": metadata.version("torch")},
    }
    say(f"decoding {test.name} with {setup.checkpoint}")
    text, rates = _run(words[1:], test.name, lines_in(test.references))
    if sha256(setup.checkpoint) != content:
        raise UserError(f"{setup.checkpoint}: replaced while it was decoded; evaluate again")
    write_text(out, text)
    hypotheses = read_output(text)
    write_text(done, json.dumps({"facts": facts | rates, "hypotheses": hypotheses}) + "\n")
    return hypotheses, facts | rates


def _run(words: Sequence[str], name: str, sentences: int) -> tuple[str, dict[str, float]]:
    """Output and rates of fairseq-generate, in this process."""
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.options import get_generation_parser
    from fairseq_cli import generate as program

    logging.basicConfig()  # otherwise fairseq sends all later messages to this output
    quiet()
    parser = get_generation_parser()
    parser.set_defaults(num_workers=0)  # no fork of a process with threads
    options = read_options(parser, words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hydra, for fairseq's use of it
        cfg = convert_namespace_to_omegaconf(options)
    output, rates, log = _Output(name, sentences), _Rates(), logging.getLogger(program.__name__)
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(rates)
    try:
        program._main(cfg, output)
    finally:
        log.removeHandler(rates)
        log.propagate = True
    output.progress.done()
    return output.getvalue(), rates.rates
