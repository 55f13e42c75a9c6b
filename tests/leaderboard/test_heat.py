"""Maps of positional logits, read back from the page's own images."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from diet_mt.errors import UserError
from diet_mt.leaderboard.heat import FILE, HEADS, finding, heat_map, read_patterns
from diet_mt.leaderboard.page import page


def test_a_map_has_the_sign_and_the_size_of_every_value() -> None:
    values: list[list[float | None]] = [[2.0, -1.0, None], [0.0, 1.0, -2.0]]
    second = {"head": 4, "values": [[0.5, -0.5, 2.0], [0, 0, 0]]}
    found = heat_map("x", [{"head": 3, "values": values}, second], most=2.0)
    assert found.heads == [3, 4]
    data = base64.b64decode(found.image.removeprefix("data:image/png;base64,"))
    image = Image.open(io.BytesIO(data)).convert("RGBA")
    assert image.size == (found.width, found.height) == (7, 2)
    pixels = [[image.getpixel((x, y)) for x in range(7)] for y in range(2)]
    orange, blue = (0xD5, 0x5E, 0x00), (0x00, 0x72, 0xB2)
    assert pixels[0][0] == (*orange, 255)
    assert pixels[1][2] == (*blue, 255)
    assert [pixels[1][0][3], pixels[0][3][3]] == [0, 0]  # zero, and the gap
    red, green, grey_blue, opaque = pixels[0][2]  # closed
    assert max(red, green, grey_blue) - min(red, green, grey_blue) < 20 < opaque
    halves = [pixels[0][1], pixels[1][1]]
    assert [pixel[:3] for pixel in halves] == [blue, orange]
    assert all(pixel[3] == pytest.approx(127, abs=20) for pixel in halves)
    assert pixels[0][6] == (*orange, 255)
    assert pixels[0][4][3] == pytest.approx(64, abs=20)  # the second head by the same scale


def row(**changes: object) -> str:
    usual = {"system": "diet_rel", "attention": "encoder", "layers": [1, 2], "head": 1}
    values = {"first_distance": -1, "by_distance": [], "values": [[1.0, None], [0.5, -1.0]]}
    return json.dumps({**usual, **values, **changes}) + "\n"


def test_maps_and_curves_are_on_the_page(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.parent.mkdir()
    curves = "".join(row(system="t5", head=n, by_distance=[n, 2, 3], values=[]) for n in (1, 2))
    file.write_text(row() + row(head=2) + curves, encoding="utf-8")
    patterns = ["local", "global", "local", None]
    own = {"system": "t5", "near_tokens": 2, "tokens": 32}
    rows = [json.dumps({**own, "positions_pattern": each}) for each in patterns]
    shared = {**own, "positions_layers": [1, 2], "positions_pattern": "local"}
    rows += [json.dumps({**shared, "layer": layer}) for layer in (1, 2)]
    empty = {**own, "layer": 1, "positions_layers": [], "positions_pattern": ""}
    rows.append(json.dumps(empty))
    (tmp_path / HEADS).write_text("\n".join(rows), encoding="utf-8")
    maps, lines = read_patterns([tmp_path])
    said = finding([maps, lines])
    assert " by their positions alone, over 32 tokens, have " in said
    assert said.endswith(" within 2 tokens of the query: 3 of 4 with t5.")
    assert (maps.system, [each.title for each in maps.maps]) == (
        "diet_rel",
        ["encoder, layers 1–2"],
    )
    assert (maps.maps[0].width, maps.maps[0].height) == (5, 2)
    assert (lines.maps, [view.content.count("head 2</text>") for view in lines.views]) == ([], [1])
    assert (maps.maps[0].heads, maps.maps[0].most) == ([1, 2], 1.0)
    shown = page([], patterns=[maps, lines])
    assert "<span>head 2</span>" in shown
    assert re.search('<i class="ramp"></i> 1</span>', shown)
    assert maps.maps[0].image in shown
    assert "img-src data:" in shown
    assert "img-src" not in page([])


def test_heads_have_colours_and_charts_of_a_system_one_scale(tmp_path: Path) -> None:
    rows = [row(system="t5", head=n, by_distance=[n, 2, 3], values=[]) for n in (1, 2)]
    rows.append(row(system="t5", layers=[3], by_distance=[1, 90, 3], values=[]))
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text("".join(rows), encoding="utf-8")
    (found,) = read_patterns([tmp_path])
    ticks = [re.findall('class="tick left"[^>]*>([^<]*)<', view.content) for view in found.views]
    assert ticks[0] == ticks[1] != []
    assert re.findall('class="curve (head-.)', found.views[0].content) == ["head-2", "head-1"]


def test_another_file_is_told(tmp_path: Path) -> None:
    assert read_patterns([tmp_path]) == []
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text("{}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"patterns.jsonl, line 1: no system, attention"):
        read_patterns([tmp_path])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"values": [[1.0, float("nan")]]}, "line 1: field 'values' is .* expected a finite"),
        ({"values": [[1e308]]}, "line 1: field 'values' is .* expected a finite number below 1e"),
        ({"values": "x"}, "line 1: field 'values' is 'x', expected"),
        ({"values": []}, "row 1: no layers, or not either"),
        ({"layers": []}, "row 1: no layers, or not either"),
    ],
)
def test_wrong_values_are_told(tmp_path: Path, changes: dict[str, object], complaint: str) -> None:
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(row(**changes), encoding="utf-8")
    with pytest.raises(UserError, match=rf"patterns.jsonl, {complaint}"):
        read_patterns([tmp_path])


def test_heads_of_one_title_have_all_values_or_all_curves(tmp_path: Path) -> None:
    (tmp_path / FILE).parent.mkdir()
    mixed = row() + row(head=2, by_distance=[1.0, 2.0], values=[])
    (tmp_path / FILE).write_text(mixed, encoding="utf-8")
    with pytest.raises(UserError, match=r"patterns.jsonl, row 2: no layers, or not either"):
        read_patterns([tmp_path])
