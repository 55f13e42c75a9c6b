"""What long loops say."""

from __future__ import annotations

import io
import sys

import pytest

from diet_mt.stages import progress


def test_a_log_has_lines_now_and_then_and_in_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([0.0, 4.0, 11.0, 12.0, 25.0, 26.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    assert list(progress.ticking("abcd", "letters")) == list("abcd")
    assert capsys.readouterr().err == (
        "   letters: 2 lines, 0 lines/s, 11 s\n"
        "   letters: 4 lines, 0 lines/s, 25 s\n"
        "   letters: 4 lines, 0 lines/s, 26 s\n"
    )


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    list(progress.ticking(range(2000), "numbers"))
    assert "\r   numbers: 0.00 lines [00:00" in terminal.getvalue()
    assert terminal.getvalue().endswith(" s\n")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", "starting"),
        (
            "INFO | train_inner | epoch 003:  12 / 134 loss=4.1, nll_loss=2.6, num_updates=280,\n",
            "epoch 3, 280 updates, loss 4.1",
        ),
        (
            'INFO | train_inner | {"epoch": 2, "update": 1.5, "loss": "7.25", "num_updates": "80",',
            "epoch 2, 80 updates, loss 7.25",
        ),
    ],
)
def test_the_log_of_a_training_tells_how_far_it_is(log: str, expected: str) -> None:
    assert progress.status_of(log) == expected
