"""How a patch gets into its place."""

from __future__ import annotations

from typing import Any, Callable

# Attribute of a function put in place here: the names of the patches that it consists of.
_PATCHES = "diet_mt_patches"

Patch = Callable[[Callable[..., Any]], Callable[..., Any]]


def replace(owner: Any, name: str, patch: Patch, *, static: bool = False) -> None:
    """Puts ``patch(f)`` in the place of the function ``f = owner.name``; once, however often it is
    called.

    Other patches of the same function, ours or another plugin's, stay: each wraps the one before.

    Args:
        owner: module or class that has the function.
        patch: makes the new function of the old one; with ``functools.wraps``, so that a second
            call, or another wrapper, still knows that it has been here.
        static: ``owner`` is a class, and the function one of its static methods.
    """
    original = getattr(owner, name)
    done = getattr(original, _PATCHES, ())
    this = f"{patch.__module__}.{patch.__qualname__}"
    if this in done:
        return
    new = patch(original)
    setattr(new, _PATCHES, (*done, this))
    setattr(owner, name, staticmethod(new) if static else new)
