"""Numbers are those of the clock, and systems take turns."""

from __future__ import annotations

from collections.abc import Callable

from diet_mt.bench.process.timing import clocked, interleaved, numbers, ratios


def test_quartiles() -> None:
    found = numbers("ms_", [4.0, 1.0, 3.0, 2.0, 5.0])
    assert found == {"ms_median": 3.0, "ms_low": 2.0, "ms_high": 4.0}
    assert numbers("", [7.0]) == {"median": 7.0, "low": 7.0, "high": 7.0}


def test_ratios_are_taken_round_by_round() -> None:
    # The machine is three times as slow in the second round; ours takes half the time in each.
    assert ratios([1.0, 3.0, 1.0], [2.0, 6.0, 2.0]) == [0.5, 0.5, 0.5]


def test_systems_take_turns_and_the_warmup_is_not_counted() -> None:
    order: list[str] = []

    def turn(name: str, duration: float) -> Callable[[], float]:
        def take() -> float:
            order.append(name)
            # Cold: the two rounds of warming up.
            return duration * (10 if len(order) <= 4 else 1)

        return take

    seconds = interleaved({"a": turn("a", 1.0), "b": turn("b", 2.0)}, rounds=3, warmup=2)
    assert seconds == {"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 2.0]}
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b"]


def test_a_turn_ends_when_the_work_has_settled() -> None:
    now = 0.0

    def passes(seconds: float) -> Callable[[], None]:
        def wait() -> None:
            nonlocal now
            now += seconds

        return wait

    # What was handed over before is not counted; what is handed over now is.
    assert clocked(passes(1.0), settle=passes(0.25), clock=lambda: now)() == 1.25
    assert now == 1.5
