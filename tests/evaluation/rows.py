"""Results to start from: tests change the fields that they are about."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from diet_mt.evaluation.hypotheses import put_result, source_of
from diet_mt.evaluation.options import Options, parse
from diet_mt.evaluation.records import Result, TaskResult, positions_of
from diet_mt.system.files import sha256


def command(text: str) -> Options:
    """A command as rows store it."""
    return parse(shlex.split(text))


def _model(text: str) -> Options:
    """``encoder-layers=6 share-all-embeddings``."""
    return command(" ".join(f"--{word}" for word in text.split()))


# Fields that may be given as text.
_TEXTS = {"training": command, "evaluation": command, "options": command, "model": _model,
          "positions": positions_of}  # fmt: skip


def as_data(changes: dict[str, Any]) -> dict[str, Any]:
    """``changes`` of fields, with text of commands, options, models and positions as data."""
    return {
        name: _TEXTS[name](value) if name in _TEXTS and isinstance(value, str) else value
        for name, value in changes.items()
    }


_ROW = Result(
    system="diet_rel",
    arch="diet_rel_tiny",
    positions=positions_of("diet-rel sharing=none scale=head"),
    seed=1,
    corpus="toy.en-de",
    direction="en-de",
    test_set="toy test",
    sentences=2,
    bleu=31.25,
    bleu_signature="nrefs:1|tok:13a|version:2.6.0",
    chrf=55.5,
    chrf_signature="nrefs:1|nc:6|version:2.6.0",
    beam=10,
    lenpen=0.6,
    checkpoint="checkpoint_best.pt",
    checkpoint_sha256="c" * 64,
    updates=700,
    epoch=3,
    parameters=1234567,
    sentences_per_second=60.5,
    tokens_per_second=250.0,
    threads=1,
    device="cpu",
    date="2026-01-02",
    revision="v0-1-gabc",
    versions={"fairseq": "fairseq-fixed 0.12.3.1", "torch": "2.13.0", "sacrebleu": "2.6.0"},
    training=command("fairseq-train data/bin --seed 1 --save-dir checkpoints/diet_rel.1"),
    evaluation=command(
        "fairseq-generate data/bin --path checkpoints/diet_rel.1/checkpoint_best.pt"
    ),
    hypotheses="toy.en-de/diet_rel_tiny.1.hyp.txt",
    hypotheses_sha256="d" * 64,
    references_sha256="e" * 64,
    length_ratio=0.975,
    precisions="69.12/44.05/30.51/21.18",
    model={},
)


def row(**changes: Any) -> Result:
    """A complete result with ``changes``."""
    return changed(_ROW, **changes)


def changed(result: Result, **changes: Any) -> Result:
    return dataclasses.replace(result, **as_data(changes))


def seeds_of(
    system: str, scores: dict[int, float], size: str = "tiny", **changes: Any
) -> list[Result]:
    """Results of one system, BLEU by seed, with the commands and file names that belong to them."""
    arch = f"{system}_{size}"
    return [
        row(
            system=system,
            arch=arch,
            positions=system.replace("_", "-"),
            seed=seed,
            bleu=bleu,
            training=f"fairseq-train data/bin --arch {arch} --seed {seed} "
            f"--save-dir checkpoints/{system}.{seed}",
            evaluation="fairseq-generate data/bin --path "
            f"checkpoints/{system}.{seed}/checkpoint_best.pt",
            hypotheses=f"toy.en-de/{arch}.{seed}.hyp.txt",
            hypotheses_sha256=hashlib.sha256(f"{arch} {seed} {changes}".encode()).hexdigest(),
            **{"checkpoint_sha256": hashlib.sha256(f"{arch} {seed}".encode()).hexdigest()}
            | changes,
        )
        for seed, bleu in scores.items()
    ]


def put(
    folder: Path, result: Result, lines: Sequence[str], references: Path, *, source: bool = False
) -> Result:
    """The result with the checksums of its hypotheses ``lines`` and references; added to the
    results in ``folder``. ``source``: with the text next to the references.
    """
    text = "".join(f"{line}\n" for line in lines)
    result = changed(
        result,
        sentences=len(lines),
        hypotheses_sha256=hashlib.sha256(text.encode()).hexdigest(),
        references_sha256=sha256(references),
    )
    original = source_of(references, result.direction) if source else None
    put_result(folder, result, lines, references, original)
    return result


_TASK_ROW = TaskResult(
    task="CoLA",
    split="valid",
    language="en",
    system="diet-rel",
    arch="roberta_diet_rel_tiny",
    positions={"encoding": "diet-rel", "sharing": "none"},
    model={},
    segments="per-head",
    metrics={"matthews": 30.5, "accuracy": 71.25},
    main_metric="matthews",
    pretrained_sha256="a" * 64,
    pretrain_updates=10_000,
    pretrain_perplexity=21.5,
    checkpoint_sha256="b" * 64,
    seed=1,
    lr=3e-05,
    epochs=5,
    batch=32,
    parameters=3_400_000,
    date="2026-01-02",
    revision="v0-1-gabc",
    versions={"torch": "2.13.0"},
    training=command("fairseq-train data/CoLA --seed 1"),
    evaluation=command("diet-mt predict CoLA x.pt"),
)


def task_row(**changes: Any) -> TaskResult:
    """A complete result with ``changes``."""
    return dataclasses.replace(_TASK_ROW, **as_data(changes))


def accuracies(task: str, values: Iterable[float], **changes: Any) -> list[TaskResult]:
    """One result for each value, an accuracy: of seeds 1, 2, ..."""
    return [
        task_row(
            task=task, metrics={"accuracy": value}, main_metric="accuracy", seed=seed, **changes
        )
        for seed, value in enumerate(values, start=1)
    ]
