"""Families of encodings: by where positions enter. What a page colours marks and lines by."""

from __future__ import annotations

from collections.abc import Mapping

from .standings import Standing

# Family -> what it is, in words. ``other``: of whatever the table below does not know.
FAMILIES: Mapping[str, str] = {
    "input": "at the input",
    "logits": "in the logits",
    "rotation": "rotation of q and k",
    "projected": "projected keys",
    "none": "no positions",
    "other": "other",
}
# Encoding, as its description begins, -> family.
_OF: Mapping[str, str] = {
    **dict.fromkeys(("sinusoidal", "learned", "concat", "shape", "cape"), "input"),
    **dict.fromkeys(("diet-rel", "diet-abs", "shaw", "t5", "tupe-abs", "tupe-rel"), "logits"),
    **dict.fromkeys(("alibi", "kerple", "sandwich", "fire", "deberta"), "logits"),
    **dict.fromkeys(("rotary", "pope"), "rotation"),
    **dict.fromkeys(("linformer", "diet-abs-lin"), "projected"),
    "none": "none",
}


def family_of(encoding: str) -> str:
    """Key of FAMILIES, of a name (``diet_rel``, ``shaw.published``) or a description
    (``diet-rel sharing=none``).
    """
    first = encoding.partition(" ")[0].partition(".")[0]
    return _OF.get(first.replace("_", "-"), "other")


def family_of_standing(standing: Standing) -> str:
    """By its encoding; of one without a line by its name."""
    return family_of(standing.line.results[0].positions if standing.line else standing.name)
