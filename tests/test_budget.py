"""Lines of each room of the package: a feature above its budget takes something away."""

from __future__ import annotations

import pytest

from diet_mt.files import PLUGIN

LINES = {
    "positions": 3080, "layers": 2220, "decoding": 1250, "kernels": 230, "models": 1360,
    "tasks": 440, "criterions": 270, "encoders": 50, "fairseq_patches": 1830, "corpora": 2040,
    "bert": 2670, "training": 890, "stages": 780, "sweeps": 790, "evaluation": 3970,
    "report": 2300, "figures": 1660, "bench": 1260, "cli": 2200, ".": 1590, "../tests": 36_460,
}  # fmt: skip


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    files = (PLUGIN / room).glob("*.py") if room == "." else (PLUGIN / room).rglob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES[room]


def test_every_room_has_a_budget() -> None:
    rooms = {path.parent.relative_to(PLUGIN).parts[:1] for path in PLUGIN.rglob("*.py")}
    assert {"".join(room) for room in rooms} - {""} == LINES.keys() - {".", "../tests"}
