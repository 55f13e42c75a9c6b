"""A patch is put in place once, and leaves other patches of the same function alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from diet_mt.fairseq_patches._replace import replace


def twice(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(number: int) -> Any:
        return 2 * function(number)

    return wrapped


def plus_one(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(number: int) -> Any:
        return function(number) + 1

    return wrapped


def module() -> SimpleNamespace:
    return SimpleNamespace(same=lambda number: number)


def test_once() -> None:
    owner = module()
    for _ in range(2):
        replace(owner, "same", twice)
    assert owner.same(5) == 10


def test_two_patches_of_one_function() -> None:
    owner = module()
    for _ in range(2):
        replace(owner, "same", twice)
        replace(owner, "same", plus_one)
    assert owner.same(5) == 11


def test_a_patch_is_known_below_one_of_somebody_else() -> None:
    owner = module()
    replace(owner, "same", twice)
    owner.same = plus_one(owner.same)
    replace(owner, "same", twice)
    assert owner.same(5) == 11


def test_somebody_elses_patch_does_not_pass_for_ours() -> None:
    owner = module()
    owner.same = plus_one(owner.same)
    replace(owner, "same", twice)
    assert owner.same(5) == 12


def test_a_static_method() -> None:
    class Owner:
        @staticmethod
        def same(number: int) -> int:
            return number

    for _ in range(2):
        replace(Owner, "same", twice, static=True)
    assert Owner.same(5) == Owner().same(5) == 10
