"""From a rehearsal to the whole: sums that can be done by hand."""

from __future__ import annotations

import pytest

from tools.forecast import FULL, Stage, clock, table


def _stage(name: str, **changed: object) -> Stage:
    usual: dict[str, object] = {
        "name": name, "pairs": 450_000, "workers": 2, "seconds": 60.0, "lines": 450_000,
        "cpu_seconds": 100.0, "main_cpu_seconds": 10.0, "peak_mib": 500,
    }  # fmt: skip
    return Stage(**{**usual, **changed})  # type: ignore[arg-type]


def test_work_is_shared_and_waiting_is_not() -> None:
    """100 s of work by two processes, and 10 s of waiting; ten times as many pairs."""
    stage = _stage("tok")
    assert stage.forecast(FULL, 2) == pytest.approx(10 * (50 + 10))
    assert stage.forecast(FULL, 20) == pytest.approx(10 * (10 + 10))  # the main process: 10 s


def test_what_one_process_does_stays_as_long() -> None:
    stage = _stage("raw", cpu_seconds=60.0, main_cpu_seconds=60.0)
    assert stage.forecast(FULL, 2) == stage.forecast(FULL, 32) == pytest.approx(600)


def test_fairseqs_main_process_does_a_share_itself() -> None:
    stage = _stage("bin", cpu_seconds=120.0, main_cpu_seconds=21.0)  # an eighth, and 6 more
    assert stage.serial_seconds() == 6.0
    assert stage.forecast(FULL, 40) == pytest.approx(10 * 6)


def test_learning_grows_with_the_words_and_not_beyond_the_sample() -> None:
    assert _stage("bpe.codes").growth(FULL) == pytest.approx(10**0.6)
    assert _stage("spm.model").growth(FULL) == pytest.approx(3_000_000 / 900_000)
    assert _stage("spm.model", pairs=2_000_000).growth(FULL) == 1.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (99, "99 s"),
        (100, "1 min 40 s"),
        (599.7, "10 min"),
        (700, "12 min"),
        (3599, "1 h 00 min"),
        (3900, "1 h 05 min"),
    ],
)
def test_times_for_people(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_the_table() -> None:
    stages = [_stage("clean", seconds=0.0), _stage("tok", peak_mib=1234)]
    lines = table(stages, "bpe").split("\n")
    assert lines[0] == (
        "| stage | 450,000 pairs, 2 processes | lines/s | peak MiB "
        "| 4.5M pairs, 2 cores (estimate) | 4.5M pairs, 32 cores (estimate) |"
    )
    assert lines[1].count("---:") == 5
    assert lines[3] == "| tok | 60 s | 15,000 | 1,234 | 10 min | 3 min 20 s |"
    assert lines[4] == "| all, bpe | 60 s |  | 1,234 | 18 min | 5 min 00 s |"
    assert lines[6] == "Longest on 2 cores: tok."
