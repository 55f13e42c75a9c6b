"""Recipes: one YAML file for each experiment, with its hyper-parameters, its runs and its table.

A name such as ``multi30k`` is ``config/multi30k.yaml`` of this checkout, or of the installed
package (``diet_mt/share/config``); what ends in ``.yaml`` is a file. ``extends: NAME``
takes over another recipe: mappings are merged, key by key, and everything else is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .command_line import unknown
from .errors import UserError

SECTIONS = frozenset(
    "about extends training options settings prepare runs run folder report".split()  # noqa: SIM905
)
_HERE = Path(__file__).resolve().parent
# An installed package brings them; only a checkout has them beside the package.
_SHARE = _HERE / "share" / "config"
_FOLDER = _SHARE if _SHARE.is_dir() else _HERE.parent / "config"
_SUFFIX = ".yaml"
_LARGEST = 100_000  # bytes of a recipe: PyYAML takes two seconds for them
_MOST = 10_000  # values in it

# An option of fairseq-train (without its dashes) -> its value; True is a flag, False and None leave
# an option out that another recipe has.
Values = dict[str, str | int | float | bool | None]


@dataclass(frozen=True)
class Recipe:
    """What a recipe says of training. ``options``: of single systems, beside those of all."""

    training: Values
    options: dict[str, Values] = field(default_factory=dict)

    def values_of(self, system: str) -> Values:
        """The options of a training of ``system``, spelt ``diet_rel``."""
        return {**self.training, **self.options.get(system, {})}


def names() -> list[str]:
    """Of all recipes that come with the project."""
    return sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}"))


def find(name: str) -> Path:
    """The file of a recipe. Raises UserError where there is none, with the nearest name."""
    if name.endswith(_SUFFIX):
        if not Path(name).is_file():
            raise UserError(f"{name}: no such recipe; give a file, or one of {_main_names()}")
        return Path(name)
    path = _FOLDER / f"{name}{_SUFFIX}"
    if "/" not in name and path.is_file():
        return path
    hint = f"; choose from {_main_names()}, or give a file"
    raise UserError(unknown("recipe", name, names(), hint))


def _main_names() -> str:
    """Those that are no variants of others, such as glue-small and multi30k.where."""
    return f"{', '.join(filter(str.isalnum, names()))} and their variants"


def read(name: str) -> dict[str, Any]:
    """All sections of a recipe and of those that it extends.

    Raises:
        UserError: there is no such recipe; it is not valid YAML, has a section that is not in
            SECTIONS, or extends itself.
    """
    return _read(find(name), ())


def load(name: str) -> Recipe:
    """What a recipe says of training. Raises UserError as :func:`read`, or if that is nothing."""
    sections = read(name)
    training = _values(sections.get("training"), f"recipe {name}, training")
    if not training:
        raise UserError(f"recipe {name}: has no section training")
    options = sections.get("options") or {}
    if not isinstance(options, dict):
        raise UserError(f"recipe {name}, options: expected a mapping of systems")
    own = {str(key): _values(options[key], f"recipe {name}, options, {key}") for key in options}
    return Recipe(training, own)


def _values(section: object, where: str) -> Values:
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise UserError(f"{where}: expected a mapping of options")
    for key, value in section.items():
        if not (value is None or isinstance(value, (str, int, float))):
            raise UserError(f"{where}, {key}: expected a number, text, true or false")
    return {str(key): value for key, value in section.items()}


def _read(path: Path, within: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in within:
        raise UserError(f"{path}: extends itself")
    if path.stat().st_size > _LARGEST:
        raise UserError(f"{path}: larger than {_LARGEST:,} bytes; not a recipe")
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a number or date
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise UserError(f"{path}{where}: not valid YAML ({problem})") from None
    if _is_large(found):
        raise UserError(f"{path}: more than {_MOST:,} values, those of aliases each time")
    if not isinstance(found, dict):
        raise UserError(f"{path}: expected sections such as training and runs")
    for section in found:
        if section not in SECTIONS:
            hint = f"; there are {', '.join(sorted(SECTIONS))}"
            raise UserError(f"{path}: {unknown('section', str(section), SECTIONS, hint)}")
    base = found.get("extends")
    if base is None:
        return found
    merged = merge(_read(find(str(base)), (*within, path.resolve())), found)
    merged.pop("extends")
    return merged


def _is_large(content: object) -> bool:
    """Whether aliases of aliases make a few lines more than memory holds, or endless."""
    left, count = [content], 0
    while left and count <= _MOST:
        value, count = left.pop(), count + 1
        if isinstance(value, (dict, list)):
            left += value.values() if isinstance(value, dict) else value
    return count > _MOST


def merge(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with what ``own`` says: mappings key by key, everything else as it is."""
    merged = dict(base)
    for key, value in own.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = merge(dict(old or {}), value) if both else value
    return merged
