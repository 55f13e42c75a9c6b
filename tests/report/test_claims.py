"""The paper's claims: verdicts, detectable differences and needed data by hand; from rows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pytest

from diet_mt.evaluation.records import put_row
from diet_mt.report.claims import (
    CONFIRMED,
    CONTRADICTED,
    UNDECIDED,
    Evidence,
    evidence,
    read_claims,
    required,
    summary,
)
from diet_mt.report.sections import DETECTABLE, read_sections

from ..evaluation.rows import put, seeds_of, task_row
from ..processes import called
from .test_command import ROOT
from .toy import SENTENCES, write_toy


@pytest.mark.parametrize(
    ("value", "half", "others", "verdict"),
    [
        (1.0, 0.9, {}, CONFIRMED),
        (-1.0, 0.9, {}, CONTRADICTED),
        (1.0, 1.0, {}, UNDECIDED),
        (-0.3, 0.9, {}, UNDECIDED),
        (-1.0, 0.9, {"sign": -0.6}, CONFIRMED),
        (1.0, 0.9, {"sign": -0.6}, CONTRADICTED),
        (1.0, 0.9, {"paper": -0.2}, CONFIRMED),
        (1.0, 0.9, {"p": 0.05}, CONFIRMED),
        (1.0, 0.9, {"p": 0.06}, UNDECIDED),
        (-1.0, 0.9, {"p": 0.01}, CONTRADICTED),
        (1.0, 0.9, {"known": False}, UNDECIDED),
        (1.0, None, {}, UNDECIDED),
        (None, None, {}, UNDECIDED),
        # Exact numbers.
        (32, 0.0, {}, CONFIRMED),
        (0, 0.0, {}, UNDECIDED),
        (-1, 0.0, {}, CONTRADICTED),
        # At most 5.
        (2.0, 3.0, {"margin": 5.0}, CONFIRMED),
        (2.0, 3.1, {"margin": 5.0}, UNDECIDED),
        (-8.0, 1.0, {"margin": 5.0}, CONFIRMED),
        (9.0, 3.0, {"margin": 5.0}, CONTRADICTED),
    ],
)
def test_verdicts(value: Any, half: Any, others: dict[str, Any], verdict: str) -> None:
    assert Evidence("", value=value, half=half, **others).verdict == verdict


def test_a_detectable_difference_is_significant_in_80_percent() -> None:
    half = 1.959964 * 0.7  # of standard deviation 0.7
    each = Evidence("", value=0.0, half=half)
    drawn = np.random.default_rng(1).normal(each.detectable, 0.7, size=100_000)
    assert (abs(drawn) > half).mean() == pytest.approx(0.8, abs=0.005)
    assert pytest.approx(1.4294, abs=1e-4) == DETECTABLE


@pytest.mark.parametrize(
    ("value", "half", "others", "takes"),
    [
        # (1.4294 / 0.5)^2 = 8.17 times as much.
        (0.0, 1.0, {}, "25 rounds, 8,334 texts"),
        (0.0, 1.0, {"paper": -0.25}, "99 rounds, 33,000 texts"),
        (0.0, 1.0, {"paper": 1.43}, "a difference as large as the paper's would show"),
        (0.0, 1.0, {"known": False, "needs": "a second seed"}, "a second seed"),
        (2.0, 1.0, {}, ""),
        # The detectable difference must shrink to 1.
        (4.0, 2.0, {"margin": 5.0}, "25 rounds, 8,334 texts"),
    ],
)
def test_what_would_decide(value: float, half: float, others: dict[str, Any], takes: str) -> None:
    sizes = {"rounds": 3, "texts": 1000}
    assert Evidence("", value=value, half=half, sizes=sizes, **others).takes == takes


def test_seeds_and_sentences_that_would_decide() -> None:
    """Student's quantiles of 4 and 6 degrees of freedom: 2.776 + 0.941 and 2.447 + 0.906."""
    assert required(3.04, 0.0, 1.0) == (3, 1)  # above 3.717 * sqrt(2 / 3) = 3.035
    assert required(3.03, 0.0, 1.0) == (4, 1)
    # The variance of the sentences may be 0.9 (gap / 2.8016)^2, or becomes half of that without
    # the 0.9; 3.717^2 / 2 is below gap^2.
    assert required(2.8016, 0.89, 1e-9)[1] == 1
    assert required(2.8016, 1.0, 0.0) == (3, pytest.approx(2, rel=1e-4))
    assert required(0.1, 0.0, 1.0)[0] == 0  # 2 * 7.85 / 0.01 seeds


def claim(**parts: Any) -> dict[str, Any]:
    data = {"toy": {"files": ["toy.en-de.jsonl", "missing.jsonl"], "hours": 2}}
    return {"data": data, "claims": [{"claim": "c", "data": ["toy"], **parts}]}


def test_bleu_is_that_of_compare(tmp_path: Path) -> None:
    """Words changed: sinusoidal 40 %, diet_rel 30 %, shaw 28 %, none 70 %; the first two have two
    seeds.
    """
    file, _ = write_toy(tmp_path)
    pairs = [["diet_rel", "sinusoidal"], ["none", "shaw"], ["shaw", "sinusoidal"], ["t5", "none"]]
    first, second, third = evidence(tmp_path, claim(bleu=pairs))
    (section,), _, _ = read_sections([file])
    lines = {line.system: line for line in section.group.lines}
    two = lines["none"], lines["shaw"]
    value, half, _ = section.tests.difference(lines["diet_rel"], lines["sinusoidal"])
    assert (first.value, first.half, first.paper) == (value, half, 0.47)
    assert (first.data, first.seeds, first.verdict) == ("toy, en-de", "2 and 2", CONFIRMED)
    assert (second.paper, second.verdict) == (None, CONTRADICTED)
    assert (third.paper, third.seeds) == (1.1, "1 and 2")
    twice = claim(bleu=pairs)
    twice["data"]["again"] = twice["data"]["toy"]
    twice["claims"][0]["data"].append("again")
    assert [each.p for each in evidence(tmp_path, twice)[:2]] == [2 * (first.p or 0)] * 2
    seeds, more = required(0.5, section.tests.over_sentences(*two), section.tests.between[0])
    size = f"{math.ceil(more * SENTENCES):,} sentences, {4 * seeds:,} core hours"
    expected = f"{seeds:,} seeds, {size}" if seeds else "over 100 seeds"
    assert replace(second, value=0.0, p=1.0).takes == expected
    content = claim(bleu=pairs)
    content["data"]["toy"]["test_sets"] = ["another", "toy test"]
    assert evidence(tmp_path, content)[0].data == "toy (toy test), en-de"
    content["data"]["toy"]["test_sets"] = ["another"]
    (missing,) = evidence(tmp_path, content)
    assert (missing.value, missing.verdict, missing.brief) == (None, UNDECIDED, "no rows")
    ours = evidence(tmp_path, read_claims())  # nothing of the project's results is there
    assert {each.data for each in ours} == {"no rows"}


def test_without_a_second_seed_no_difference_decides(tmp_path: Path) -> None:
    (tmp_path / "refs.de").write_text("a b c d e\n" * 50, encoding="utf-8")
    for system, line in (("sinusoidal", "x b y d e"), ("diet_rel", "a b c d e")):
        (row,) = seeds_of(system, {1: 30.0})
        put(tmp_path, row, [line] * 50, tmp_path / "refs.de")
    (each,) = evidence(tmp_path, claim(bleu=[["diet_rel", "sinusoidal"]]))
    assert (each.value or 0) > 10
    assert (each.verdict, each.takes) == (UNDECIDED, "a second seed")


def test_tasks_have_students_interval_over_seeds(tmp_path: Path) -> None:
    scores = {("learned", "input"): [50, 52, 54], ("diet-rel", "per-head"): [56, 57, 61]}
    for (system, segments), values in scores.items():
        about: dict[str, Any] = {"system": system, "segments": segments}
        about |= {"positions": {"encoding": system, "scale": "head"}}
        if system == "diet-rel":
            about["positions"] |= {"sharing": "none"}
        for seed, value in enumerate(values, start=1):
            put_row(tmp_path / "tasks", task_row(metrics={"matthews": value}, seed=seed, **about))
        more = {"task": "SST-2", "metrics": {"accuracy": 80}, "main_metric": "accuracy"}
        put_row(tmp_path / "tasks", task_row(**more, **about))
        answers = {"task": "SQuAD", "metrics": {"f1": 9}, "main_metric": "f1"}
        shorter = {"pretrained_sha256": "e" * 64, "pretrain_updates": 5000}
        put_row(tmp_path / "tasks", task_row(**answers, **about, **shorter))
    longer = {"pretrained_sha256": "f" * 64, "pretrain_updates": 20_000}  # of one system alone
    put_row(tmp_path / "tasks", task_row(metrics={"matthews": 99}, **about, **longer))
    (each,) = evidence(tmp_path, claim(tasks=[["diet-rel per-head", "learned input"]]))
    assert (each.data, each.seeds) == ("GLUE: CoLA; 10,000 updates", "3 and 3")
    assert each.paper == pytest.approx(1.6)
    assert each.value == pytest.approx(6)
    pooled = math.sqrt((stdev([50, 52, 54]) ** 2 + stdev([56, 57, 61]) ** 2) / 2)
    assert each.half == pytest.approx(2.776 * pooled * math.sqrt(2 / 3), rel=0.05)
    assert each.verdict == UNDECIDED  # one pretrained model of each


def test_tasks_of_several_pretrained_models_decide(tmp_path: Path) -> None:
    models = {("learned", "a"): [50, 52], ("learned", "b"): [52, 54], ("learned", "c"): [52]}
    models |= {("diet-rel", "d"): [80, 84], ("diet-rel", "e"): [83, 85]}
    for (system, model), values in models.items():
        segments = "input" if system == "learned" else "per-head"
        about: dict[str, Any] = {"system": system, "segments": segments, "pretrained_sha256": model}
        for task, metric in (("CoLA", "matthews"), ("STS-B", "spearman")):
            of_task = {"task": task, "main_metric": metric, **about}
            for seed, value in enumerate(values, start=1):
                put_row(tmp_path / "tasks", task_row(metrics={metric: value}, seed=seed, **of_task))
    (each,) = evidence(tmp_path, claim(tasks=[["diet-rel per-head", "learned input"]]))
    assert (each.data, each.seeds) == ("GLUE: CoLA, STS-B; 10,000 updates", "2 and 3")
    assert each.value == pytest.approx(83 - 52)
    # Of a single task; the errors of two are independent.
    single = 3.182 * math.sqrt(4 / 3 * (1 / 2 + 1 / 3))
    assert 0.6 * single < (each.half or 0) < 0.85 * single
    assert each.verdict == CONFIRMED
    assert each.sizes == {"pretrained models": pytest.approx(2.4)}


def test_kinds_of_segments_differ_on_tasks_with_segments(tmp_path: Path) -> None:
    for segments, task, metric, values in (
        ("per-head", "CoLA", "matthews", [12, 14]),
        ("input", "CoLA", "matthews", [10, 11]),
        ("none", "QNLI", "accuracy", [60, 70]),
    ):
        about = {"system": "diet-rel", "segments": segments, "task": task, "main_metric": metric}
        for seed, value in enumerate(values, start=1):
            put_row(tmp_path / "tasks", task_row(metrics={metric: value}, seed=seed, **about))
    (each,) = evidence(tmp_path, claim(tasks=[["diet-rel per-head", "diet-rel input"]]))
    assert (each.data, each.value) == ("GLUE: CoLA; 10,000 updates", 2.5)


def test_costs_and_ranks(tmp_path: Path) -> None:
    ratios = {"ratio_median": 1.02, "ratio_low": 1.01, "ratio_high": 1.03, "rounds": 16}
    place = {"shape": "small", "device": "cpu", **ratios}
    costs = [{"encoding": name, "measure": "forward", **place} for name in ("diet-abs", "shaw")]
    ranks: list[dict[str, Any]] = [
        {"system": system, "arch": f"{system}_tiny", "what": what, "rank": rank, "tokens": 96}
        for system, what, rank in (
            *(("diet_abs", "logits", 64), ("diet_abs", "logits", 60), ("learned", "logits", 32)),
            *(("diet_abs", "positional", 32), ("learned", "positional", 32)),
        )
    ]
    for name, rows in (("cost", costs), ("rank", ranks)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    cost: dict[str, Any] = {"file": "cost.jsonl", "within": 5}
    cost["encodings"] = ["diet-abs", "shaw"]
    rank = {"files": ["rank.jsonl"], "pair": ["diet_abs", "learned"]}
    diet, shaw, logits, positional = evidence(tmp_path, claim(cost=cost, rank=rank))
    # The standard error of a median is 1.2533 s / sqrt(n), and quartiles are 1.349 s apart.
    assert diet.half == pytest.approx(1.96 * 1.2533 * 2 / 1.349 / 4, rel=1e-3)
    assert [diet.value, diet.paper, shaw.paper] == pytest.approx([2.0, 1, 65])
    assert [diet.verdict, shaw.verdict] == [CONFIRMED] * 2
    assert [(each.value, each.verdict) for each in (logits, positional)] == [
        (28, CONFIRMED),
        (0, UNDECIDED),
    ]


def test_figure_1_has_a_bar_for_each_number() -> None:
    every = [
        Evidence("", ("diet_abs", "sinusoidal"), "captions, en-de", 1.5, 0.5),
        Evidence("", ("diet_rel", "sinusoidal"), "captions, en-de", -0.5, 0.5, paper=0.47),
        Evidence("", ("diet-rel per-head", "learned input"), "GLUE: CoLA", 2.0, paper=1.6),
        Evidence("", ("shaw.published", "sinusoidal"), "captions, en-de", 7.0, 0.5),
    ]
    (axes,) = summary(every).axes
    assert sorted(bar.get_width() for bar in axes.patches) == [-0.5, 0.47, 1.5, 1.6, 2.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "captions, en-de",
        "GLUE: CoLA",
    ]


def test_the_table_of_our_claims_is_made_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert called("claims", "--readme", "results/claims.md", "--check") == 0
    assert called("claims", "--brief", "--readme", "results/README.md", "--check") == 0
