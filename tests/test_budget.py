"""Lines of each room of the package: a feature above its budget takes something away."""

from __future__ import annotations

import pytest

from diet_mt.system.files import PLUGIN

LINES = {
    "positions": 3372, "nn": 886, "layers": 1948, "kernels": 291, "decoding": 1080,
    "models": 1585, "tasks": 413, "criterions": 261, "encoders": 48, "fairseq_patches": 1378,
    "system": 1114, "corpora": 1891, "bert": 2160, "evaluation": 3028, "report": 2334,
    "figures": 1381, "bench": 1166, "experiments": 1256, "cli": 1706, "export": 356, ".": 62,
    "../tests": 27_452,
}  # fmt: skip


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    files = (PLUGIN / room).glob("*.py") if room == "." else (PLUGIN / room).rglob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES[room]


def test_every_room_has_a_budget() -> None:
    rooms = {path.parent.relative_to(PLUGIN).parts[:1] for path in PLUGIN.rglob("*.py")}
    assert {"".join(room) for room in rooms} - {""} == LINES.keys() - {".", "../tests"}
