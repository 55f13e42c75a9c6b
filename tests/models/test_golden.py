"""Names and shapes in the checkpoint: what must stay for old checkpoints to load.

``tests/golden/fairseq.json`` has what all encodings share, ``<encoding>_<sharing>.json`` beside it
what an encoding adds, both for the toy model. After a change that is meant to break old
checkpoints, and says so in CHANGELOG.md:

    pytest tests/models/test_golden.py --write-golden
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from diet_mt.models.diet_transformer import DietTransformerModel

from ..toy import CASES, build, every_encoding, name_of, position_parameters

FOLDER = Path(__file__).resolve().parent.parent / "golden"
COMMON = "fairseq"

Shapes = dict[str, list[int]]


def shapes(model: DietTransformerModel) -> Shapes:
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()}


@cache
def of_no_positions() -> Shapes:
    return shapes(build("none"))


def of_positions(model: DietTransformerModel) -> Shapes:
    """The entries of the encoding, what it makes narrower, and the signature, whose length depends
    on it.
    """
    own = position_parameters(model).keys() | {"position_signature"}
    common = of_no_positions()
    return {
        name: shape for name, shape in shapes(model).items() if name in own or shape != common[name]
    }


def compare(name: str, actual: Shapes, request: pytest.FixtureRequest) -> None:
    path = FOLDER / f"{name}.json"
    if request.config.getoption("--write-golden"):
        lines = ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(shape)}" for key, shape in sorted(actual.items())
        )
        path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    assert actual == json.loads(path.read_text(encoding="utf-8"))


def test_what_all_encodings_share(request: pytest.FixtureRequest) -> None:
    common = dict(of_no_positions())
    del common["position_signature"]
    compare(COMMON, common, request)


@every_encoding
def test_what_the_encoding_adds(
    encoding: str, sharing: str | None, request: pytest.FixtureRequest
) -> None:
    model = build(encoding, sharing)
    own = of_positions(model)
    compare(name_of(encoding, sharing), own, request)
    assert shapes(model).keys() == of_no_positions().keys() | own.keys()


def test_no_golden_file_is_left_over() -> None:
    names = {COMMON} | {name_of(*case) for case in CASES}
    assert {path.stem for path in FOLDER.glob("*.json")} == names
