"""Imports inside the package go one way, and an encoding's name chooses code only under positions/.

One arrow points back: the ``__init__`` of a folder that registers names imports ``plugin``, so that
whoever has one of the names has all.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from diet_mt.cli.main import COMMANDS

from .positions.cases import CASES

PACKAGE = Path(__file__).resolve().parent.parent / "diet_mt"
STDLIB = "the standard library"

# Part of the package -> the other parts and the outside packages it may import. The standard
# library and the part itself always may be. What is new directly under diet_mt/ gets a line here.
ALLOWED: dict[str, set[str]] = {
    # Light: what it brings is loaded by name, on use.
    "__init__": set(),
    "__main__": {"cli"},
    "plugin": {"models", "tasks", "criterions", "encoders", "fairseq_patches", "nn"},
    # The tools.
    "cli": {"bert", "corpora", "evaluation", "experiments", "export", "figures", "models", "plugin"}
    | {"positions", "report", "system", "__version__", "shtab"},
    "experiments": {"system", "evaluation", "bert", "corpora", "fairseq_patches", "submitit"}
    | {"torch", "fairseq", "yaml"},
    "report": {"evaluation", "corpora", "positions", "system", "PIL", "matplotlib", "numpy"}
    | {"scipy", "tabulate", "yaml"},
    "export": {"bench", "layers", "nn", "positions", "system", "torch", "numpy", "ctranslate2"},
    "bench": {"evaluation", "decoding", "models", "positions", "report", "system"}
    | {"torch", "fairseq"},
    "figures": {"corpora", "report", "evaluation", "layers", "positions", "system", "torch"}
    | {"numpy", "fairseq"},
    "evaluation": {"bert", "corpora", "models", "tasks", "criterions", "fairseq_patches"}
    | {"system", "plugin", "register", "sacrebleu", "torch", "numpy", "fairseq", "fairseq_cli"},
    # The plugin.
    "models": {"bert", "corpora", "encoders", "layers", "nn", "positions", "system", "torch"}
    | {"fairseq", "omegaconf"},
    "tasks": {"bert", "corpora", "decoding", "system", "torch", "numpy", "fairseq", "omegaconf"},
    "criterions": {"bert", "system", "torch", "numpy", "fairseq"},
    "encoders": {"bert", "corpora", "system", "fairseq"},
    "layers": {"kernels", "nn", "positions", "system", "torch", "fairseq"},
    "kernels": {"nn", "torch"},
    "positions": {"nn", "system", "torch"},
    "nn": {"torch"},
    "decoding": {"kernels", "layers", "nn", "positions", "system", "torch", "fairseq"},
    "fairseq_patches": {"decoding", "layers", "models", "nn", "system", "torch", "numpy"}
    | {"fairseq", "omegaconf", "yaml"},
    # Text: no torch, no fairseq.
    "bert": {"corpora", "system", "numpy", "scipy", "sentencex", "sklearn", "sentencepiece"}
    | {"tokenizers"},
    "corpora": {"system", "numpy", "py3langid", "sacrebleu", "sacremoses", "sentencepiece"}
    | {"subword_nmt", "yaml"},
    "system": {"filelock", "psutil", "tqdm"},
}

# Parts of parts with a rule of their own.
OF_PARTS: dict[tuple[str, ...], set[str]] = {
    # Also run without the rest of the package.
    ("bench", "worker"): {"ctranslate2", "fairseq", "numpy", "torch"},
    # The encodings import no more than torch and this.
    ("system", "errors"): set(),
    ("system", "files"): {"system"},
    ("system", "options"): {"system"},
    # Rows are read and written without fairseq.
    ("evaluation", "options"): {"system"},
    ("evaluation", "records"): {"system", "evaluation"},
    ("evaluation", "json_rows"): {"system"},
}

# Folders that register names with fairseq. Their __init__, and no other file, imports plugin.
REGISTERING = {(part, "__init__") for part in ("models", "tasks", "criterions", "encoders")}

# Under positions/, what encodings share; all other files there are encodings.
SHARED = {"base", "factors", "options", "position_ids", "relative", "terms"}
# Encodings that are made of others, as their papers define them, or share a base class with them;
# and, elsewhere, files about a format that has some encodings: fairseq's and CTranslate2's.
MADE_OF = {
    "signature": {"absolute"},
    "ctranslate2": {"rotary", "shaw"},
    "augmented": {"absolute"},
    "linformer": {"absolute", "diet"},
    "tupe": {"t5"},
    "sites": {"absolute"},
}

# Names that are words of their own: a comparison counts if it also says encoding.
AMBIGUOUS = {"none"}


def module_of(path: Path) -> tuple[str, ...]:
    """('positions', 'diet') for diet_mt/positions/diet.py, '__init__' for a package."""
    return path.relative_to(PACKAGE).with_suffix("").parts


Import = tuple[int, bool, tuple[str, ...]]


@cache
def imports(source: str, module: tuple[str, ...]) -> list[Import]:
    """(line, inside, dotted target) of every imported name, also within functions and by name.

    Inside: a relative import, whose target is counted from the package.
    """
    return list(_imports(source, module))


def _imports(source: str, module: tuple[str, ...]) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, False, tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level] if node.level else ()
            target = (*base, *filter(None, (node.module or "").split(".")))
            for alias in node.names:
                yield node.lineno, bool(node.level), (*target, alias.name)
        elif isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func).split(".")[-1]
            first = node.args[0]
            if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, False, tuple(str(first.value).split("."))


def wrong_imports(source: str, module: tuple[str, ...]) -> list[str]:
    """One sentence for each import in ``source``, the text of ``module``, that is forbidden."""
    part, complaints = module[0], []
    if part not in ALLOWED:
        return [f"{part}: new under diet_mt/; say in ALLOWED what it may import"]
    allowed = OF_PARTS.get(module[:2], ALLOWED[part])
    for line, inside, target in imports(source, module):
        where = f"diet_mt/{'/'.join(module)}.py:{line}: "
        top = target[0] if inside and target else "".join(target[:1])
        if not inside and top == PACKAGE.name:
            complaints.append(f"{where}imports inside the package are relative")
        elif not inside and top in sys.stdlib_module_names:
            continue
        elif inside and _of_another_encoding(module, target):
            complaints.append(f"{where}{module[-1]} imports the encoding {target[1]}")
        elif inside and top == part:
            continue
        elif top not in allowed and (top != "plugin" or module not in REGISTERING):
            may = ", ".join(sorted({*allowed, STDLIB}))
            complaints.append(
                f"{where}{part} may not import {top or 'the whole package'}, only {may}"
            )
    return complaints


def _of_another_encoding(module: tuple[str, ...], target: tuple[str, ...]) -> bool:
    """Whether a file imports an encoding that it is not made of; REGISTRY may import all."""
    if module == ("positions", "__init__") or target[:1] != ("positions",):
        return False
    encodings = {name[-1] for name in SOURCES if name[0] == "positions"}
    return bool(encodings.intersection(target[1:2]) - SHARED - MADE_OF.get(module[-1], set()))


def _strings(node: ast.AST) -> set[str]:
    texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return {value.replace("_", "-") for value in texts if isinstance(value, str)}


def branches_on(source: str, names: set[str]) -> list[int]:
    """Lines of ``source`` that compare with one of ``names``, spelt diet-rel or diet_rel."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            hits = _strings(node) & names
        elif isinstance(node, ast.Match):
            hits = set().union(*(_strings(case.pattern) for case in node.cases)) & names
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            prefixes = _strings(node) if node.func.attr in ("startswith", "endswith") else set()
            hits = {name for name in names for prefix in prefixes if prefix and prefix in name}
        else:
            continue
        about = ast.unparse(node.subject if isinstance(node, ast.Match) else node).lower()
        if hits - AMBIGUOUS or (hits and "encoding" in about):
            lines.append(node.lineno)
    return lines


SOURCES = {module_of(path): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def test_imports_go_one_way() -> None:
    wrong = [line for module, text in SOURCES.items() for line in wrong_imports(text, module)]
    assert wrong == []


def test_every_permission_is_used() -> None:
    used: dict[str | tuple[str, ...], set[str]] = {}
    for module, text in SOURCES.items():
        place = module[:2] if module[:2] in OF_PARTS else module[0]
        names = {target[0] for *_, target in imports(text, module) if target}
        used.setdefault(place, set()).update(names)
    for part, allowed in {**ALLOWED, **OF_PARTS}.items():
        own = {part} if isinstance(part, str) else {part[0]}
        assert allowed - own - used[part] == set(), part


def test_imports_go_down_the_table_of_the_page() -> None:
    """Or stay on its line."""
    page = (PACKAGE.parent / "docs" / "design.md").read_text(encoding="utf-8")
    (table,) = (block for block in page.split("\n\n") if block.startswith("| room |"))
    names = [re.findall(r"`(\w+)(?:/|\.py)`", line.split("|")[1]) for line in table.split("\n")]
    height = {name: -number for number, line in enumerate(names) for name in line}
    height = {name: height[name] for name in height.keys() & ALLOWED.keys()}
    assert {"cli", "evaluation", "models", "layers", "positions"} < height.keys()
    up = {
        f"{part} -> {other}"
        for part in height
        for other in ALLOWED[part] & height.keys()
        if height[other] > height[part]
    }
    assert up == set()


def test_encodings_are_chosen_by_name_only_under_positions() -> None:
    names = set(CASES)
    places = {
        "/".join(module): branches_on(text, names)
        for module, text in SOURCES.items()
        if module[0] != "positions"
    }
    assert {module: lines for module, lines in places.items() if lines} == {}


def parts_behind(module: str) -> set[str]:
    """The parts of the package that a module imports, by itself and through others."""
    modules, seen = [tuple(module.split("."))], set[tuple[str, ...]]()
    while modules:
        name = modules.pop()
        source = SOURCES.get(name)
        if name not in seen and source is not None:
            seen.add(name)
            for _, inside, target in imports(source, name):
                modules += [target, target[:-1]] if inside else [target]
        elif name and source is None:
            seen.add(name[:1])
    return {name[0] for name in seen}


def test_a_command_that_uses_fairseq_has_the_plugin() -> None:
    """Without, it would read checkpoints by fairseq's own way, or find no model of ours."""
    using = 0
    for command in COMMANDS:
        parts = parts_behind(COMMANDS[command][0].partition(":")[0])
        if parts & {"fairseq", "fairseq_patches", "decoding", "layers"}:
            assert parts & {"plugin", *(part for part, _ in REGISTERING)}, command
            using += 1
    assert using
