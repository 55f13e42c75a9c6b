"""The seed is ours within, and the environment's again afterwards."""

from __future__ import annotations

import os

import pytest

from diet_mt.evaluation.bleu import SEED, fixed_seed


@pytest.mark.parametrize("before", [None, "7", "none"])
def test_the_environment_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    if before:
        monkeypatch.setenv("SACREBLEU_SEED", before)
    with fixed_seed():
        assert os.environ["SACREBLEU_SEED"] == SEED == "12345"
    assert os.environ.get("SACREBLEU_SEED") == before
