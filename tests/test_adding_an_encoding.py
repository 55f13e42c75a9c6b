"""docs/adding-an-encoding.md, carried out: one file, one line, one row; then training and tests."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from .commands.runner import Runner

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "adding-an-encoding.md").read_text(encoding="utf-8")
# Tests whose expectations come from the row of tests/positions/cases.py, and the budget of lines.
TESTS = (
    "tests/test_budget.py",
    "tests/models/test_golden.py",
    "tests/positions/test_encodings.py",
    "tests/positions/test_registry.py",
    "tests/layers/test_against_loops.py",
    "tests/models/test_parameters.py",
    "tests/models/test_word_order.py",
)
PROGRAM = """
import sys
import torch
import diet_mt, diet_mt.plugin
from diet_mt.report.style import color_of, family_of
from fairseq.models import ARCH_MODEL_REGISTRY as known
from tests.toy import build, collate, position_parameters, sources, targets

print(diet_mt.__file__)
print(*sorted(name for name in known if "tisa" in name))
print(color_of("tisa"), family_of("tisa"))
model = build("tisa", "head-wise", tables=None)
before = {name: value.detach().clone() for name, value in position_parameters(model).items()}
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    logits = model(collate(sources()), None, collate(targets()))[0]
    loss = -torch.log_softmax(logits, dim=-1)[..., 7].mean()
    print(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
after = position_parameters(model)
print(bool(before) and all((value != after[name]).all() for name, value in before.items()))
"""


def block(language: str, number: int = 0) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(blocks[number])


def patch(path: Path, diff: str) -> None:
    """Adds the lines of ``diff`` with a plus before or behind the others, which must be unique."""
    old = "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] != "+")
    new = "".join(line[1:] for line in diff.splitlines(keepends=True))
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of package and tests with the encoding of the page."""
    folder = tmp_path_factory.mktemp("tisa")
    for name in ("diet_mt", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "diet_mt" / "positions" / "tisa.py").write_text(block("python"), encoding="utf-8")
    patch(folder / "diet_mt" / "positions" / "__init__.py", block("diff", 0))
    patch(folder / "tests" / "positions" / "cases.py", block("diff", 1))
    return folder


def test_it_has_architectures_and_a_color_and_learns(runner: Runner, copy: Path) -> None:
    program = copy / "program.py"
    program.write_text(f"import sys\nsys.path.insert(0, {str(copy)!r})\n{PROGRAM}")
    path, names, style, *losses, moved = runner(str(program)).ok().stdout.strip().split("\n")
    assert Path(path) == copy / "diet_mt" / "__init__.py"
    sizes = {"tisa": ("base", "big", "tiny"), "roberta_tisa": ("base", "small", "tiny")}
    expected = [f"{name}_{size}" for name, own in sizes.items() for size in own]
    assert [name for name in names.split() if "multilingual" not in name] == sorted(expected)
    assert re.fullmatch(r"#[0-9a-f]{6} logits", style)
    values = [float(loss) for loss in losses]
    assert values == sorted(values, reverse=True)
    assert moved == "True"


def test_its_row_is_all_that_the_tests_need(runner: Runner, copy: Path) -> None:
    program = copy / "run.py"
    arguments = [*TESTS, "-q", "-n0", "-k", "tisa or every_encoding or budget", "--write-golden"]
    program.write_text(
        f"import os, sys\nos.chdir({str(copy)!r})\nsys.path.insert(0, {str(copy)!r})\n"
        f"import pytest\nsys.exit(pytest.main({arguments!r}))\n"
    )
    done = runner(str(program)).ok()
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 50
