"""Lines of each room of the package: a feature above its budget takes something away."""

from __future__ import annotations

import pytest

from diet_mt.system.files import PLUGIN

LINES = {
    "positions": 3280, "nn": 890, "layers": 1950, "kernels": 280, "decoding": 1090,
    "models": 1570, "tasks": 400, "criterions": 270, "encoders": 50, "fairseq_patches": 1390,
    "system": 1150, "corpora": 1950, "bert": 2370, "evaluation": 3080, "report": 2340,
    "figures": 1430, "bench": 1190, "experiments": 1320, "cli": 1720, "export": 400, ".": 70,
    "../tests": 30_020,
}  # fmt: skip


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    files = (PLUGIN / room).glob("*.py") if room == "." else (PLUGIN / room).rglob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES[room]


def test_every_room_has_a_budget() -> None:
    rooms = {path.parent.relative_to(PLUGIN).parts[:1] for path in PLUGIN.rglob("*.py")}
    assert {"".join(room) for room in rooms} - {""} == LINES.keys() - {".", "../tests"}
