"""Lines of each room of the package: a feature above its budget takes something away."""

from __future__ import annotations

import pytest

from diet_mt.system.files import PLUGIN

LINES = {
    "positions": 2970, "nn": 880, "layers": 1940, "kernels": 280, "decoding": 1220,
    "models": 1550, "tasks": 400, "criterions": 270, "encoders": 50, "fairseq_patches": 1340,
    "system": 1150, "corpora": 1950, "bert": 2370, "evaluation": 3080, "report": 1990,
    "figures": 1430, "bench": 1400, "experiments": 1320, "cli": 1680, ".": 70,
    "../tests": 30_330,
}  # fmt: skip


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    files = (PLUGIN / room).glob("*.py") if room == "." else (PLUGIN / room).rglob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES[room]


def test_every_room_has_a_budget() -> None:
    rooms = {path.parent.relative_to(PLUGIN).parts[:1] for path in PLUGIN.rglob("*.py")}
    assert {"".join(room) for room in rooms} - {""} == LINES.keys() - {".", "../tests"}
