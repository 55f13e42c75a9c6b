"""What long loops say."""

from __future__ import annotations

import pytest

from diet_mt.stages import progress


def test_a_loop_says_how_far_it_is_and_how_it_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([0.0, 4.0, 11.0, 12.0, 25.0, 26.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    assert list(progress.ticking("abcd", "letters")) == list("abcd")
    assert capsys.readouterr().err == (
        "   letters: 2 lines, 0 lines/s, 11 s\n"
        "   letters: 4 lines, 0 lines/s, 25 s\n"
        "   letters: 4 lines, 0 lines/s, 26 s\n"
    )


@pytest.mark.parametrize(("value", "seconds"), [("0.5", 0.5), ("often", 10.0)])
def test_how_often_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, value: str, seconds: float
) -> None:
    monkeypatch.setenv(progress.VARIABLE, value)
    assert progress.seconds_between() == seconds
