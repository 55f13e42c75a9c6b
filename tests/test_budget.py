"""Lines of each room of the package: a feature above its budget takes something away."""

from __future__ import annotations

import pytest

from diet_mt.system.files import PLUGIN

LINES = {
    "positions": 3280, "nn": 890, "layers": 1950, "kernels": 280, "decoding": 1090,
    "models": 1570, "tasks": 400, "criterions": 270, "encoders": 50, "fairseq_patches": 1380,
    "system": 1110, "corpora": 1900, "bert": 2240, "evaluation": 3020, "report": 2240,
    "figures": 1410, "bench": 1180, "experiments": 1270, "cli": 1710, "export": 400, ".": 70,
    "../tests": 28_620,
}  # fmt: skip


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    files = (PLUGIN / room).glob("*.py") if room == "." else (PLUGIN / room).rglob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES[room]


def test_every_room_has_a_budget() -> None:
    rooms = {path.parent.relative_to(PLUGIN).parts[:1] for path in PLUGIN.rglob("*.py")}
    assert {"".join(room) for room in rooms} - {""} == LINES.keys() - {".", "../tests"}
