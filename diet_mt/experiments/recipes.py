"""Recipes: YAML files with the hyper-parameters, runs and report of an experiment.

The name ``multi30k`` refers to ``config/multi30k.yaml`` of this checkout or of the installed
package (``diet_mt/share/config``); a name that ends in ``.yaml`` is a path. ``extends: NAME``
includes another recipe: mappings are merged recursively, and other values are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..system.errors import UserError
from ..system.options import unknown

SECTIONS = frozenset(
    "about extends training options settings prepare runs run folder report".split()  # noqa: SIM905
)
_PACKAGE = Path(__file__).resolve().parents[1]
_SHARE = _PACKAGE / "share" / "config"  # of an installed package
_FOLDER = _SHARE if _SHARE.is_dir() else _PACKAGE.parent / "config"
_SUFFIX = ".yaml"

# Option of fairseq-train (without dashes) -> value. True: a flag; False and None: removes an option
# of the extended recipe.
Values = dict[str, str | int | float | bool | None]


@dataclass(frozen=True)
class Recipe:
    """Hyper-parameters of trainings: options of all systems, and of single ones."""

    training: Values
    options: dict[str, Values] = field(default_factory=dict)  # of a system, override ``training``

    def values_of(self, system: str) -> Values:
        """The options for training ``system``, such as ``diet_rel``."""
        return {**self.training, **(self.options.get(system) or {})}


def names() -> list[str]:
    """Names of all recipes of the project."""
    return sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}"))


def find(name: str) -> Path:
    """The path of a recipe. Raises :class:`UserError` if there is none."""
    path = Path(name) if name.endswith(_SUFFIX) else _FOLDER / f"{name}{_SUFFIX}"
    if path.is_file():
        return path
    main = f"{', '.join(filter(str.isalnum, names()))} and their variants"
    if name.endswith(_SUFFIX):
        raise UserError(f"{name}: no such recipe; give a file, or one of {main}")
    raise UserError(unknown("recipe", name, names(), f"; choose from {main}, or give a file"))


def read(name: str, extended: Sequence[Path] = ()) -> dict[str, Any]:
    """All sections of a recipe, including extended ones. Raises :class:`UserError` if invalid."""
    path = find(name)
    if path in extended:
        raise UserError(f"{path}: extends itself, through {extended[-1]}")
    try:
        sections = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date, or not UTF-8
        raise UserError(f"{path}: not valid YAML ({error})") from None
    if not isinstance(sections, dict):
        raise UserError(f"{path}: expected sections such as training and runs")
    for section in sections:
        if section not in SECTIONS:
            hint = f"; there are {', '.join(sorted(SECTIONS))}"
            raise UserError(f"{path}: {unknown('section', str(section), SECTIONS, hint)}")
    base = sections.pop("extends", None)
    return sections if base is None else _merge(read(str(base), (*extended, path)), sections)


def load(name: str) -> Recipe:
    """The hyper-parameters of a recipe. Raises :class:`UserError` if it has none."""
    sections = read(name)
    if not sections.get("training"):
        raise UserError(f"recipe {name}: has no section training")
    return Recipe(sections["training"], sections.get("options") or {})


def _merge(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, new in own.items():
        old = merged.get(key)
        merged[key] = _merge(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
    return merged
