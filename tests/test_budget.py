"""Lines of each room of the package: a feature above its budget takes something away."""

from __future__ import annotations

import pytest

from diet_mt.system.files import PLUGIN

LINES = {
    "positions": 3282, "nn": 890, "layers": 1950, "kernels": 291, "decoding": 1090,
    "models": 1591, "tasks": 415, "criterions": 260, "encoders": 48, "fairseq_patches": 1385,
    "system": 1114, "corpora": 1891, "bert": 2239, "evaluation": 3021, "report": 2236,
    "figures": 1395, "bench": 1170, "experiments": 1271, "cli": 1711, "export": 389, ".": 62,
    "../tests": 28_643,
}  # fmt: skip


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    files = (PLUGIN / room).glob("*.py") if room == "." else (PLUGIN / room).rglob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES[room]


def test_every_room_has_a_budget() -> None:
    rooms = {path.parent.relative_to(PLUGIN).parts[:1] for path in PLUGIN.rglob("*.py")}
    assert {"".join(room) for room in rooms} - {""} == LINES.keys() - {".", "../tests"}
