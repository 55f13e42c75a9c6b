"""Options written as Python text are data: what fairseq's presets say is read, nothing runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import fairseq
import pytest
from fairseq import utils

from diet_mt.errors import UserError
from diet_mt.fairseq_patches.literals import MODULES, literal

from ..toy import build

pytestmark = pytest.mark.hostile


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(0.9, 0.98)", (0.9, 0.98)),
        (" [100, 200]", [100, 200]),
        ("-1e-3", -1e-3),
        ("{'a': [True, None]}", {"a": [True, None]}),
        ("[(512, 3)] * 2 + [(1, 1)]", [(512, 3), (512, 3), (1, 1)]),
        ("3 * 0.5 - 1 / 4", 1.25),
    ],
)
def test_literals_are_read(text: str, value: Any) -> None:
    assert literal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os').system('true')", "[print(1) or 2]", "(lambda: 1)()", "print"),
        *("(1).__class__", "[x for x in (1, 2)]", "f'{1}'", "1 if 1 else 2", "2 ** 9", "1 and 2"),
        *("[0] * 10 ** 9", "[0] * 99999", "99999 * 'a'", "1 / 0", "'a' * 'b'", "(", "", "1\n2"),
        *("(" * 5000, "-" * 9999 + "1", "1" * 20000),
    ],
)
def test_all_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as refused:
        literal(text)
    assert len(str(refused.value)) < 300


def test_fairseqs_functions_read_literals_alone(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    code = f"[__import__('pathlib').Path({str(witness)!r}).touch() or 100, 200]"
    for function in (utils.eval_str_list, utils.eval_str_dict, utils.eval_bool):
        with pytest.raises(UserError):
            function(code)
    for option in ("adaptive_softmax_cutoff",):
        with pytest.raises(UserError):
            build("diet-rel", **{option: code})
    assert not witness.exists()
    assert utils.eval_str_list("[1, 2]", type=int) == [1, 2]
    assert utils.eval_bool(None, default=True) is True


def test_every_module_of_fairseq_that_calls_eval_is_listed() -> None:
    package = Path(fairseq.__file__).parent
    calls = re.compile(r"(?<![\w.])(eval|exec)\(")
    found = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if "examples" not in path.parts and calls.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(MODULES)
    for name in MODULES:
        assert importlib.import_module(name).eval is literal
