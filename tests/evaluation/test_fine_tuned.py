"""What a fine-tuned checkpoint says of its encoding."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

import diet_mt
from diet_mt.errors import UserError
from diet_mt.evaluation.checkpoint import pretrained_of
from diet_mt.evaluation.fine_tuned import own_positions
from diet_mt.evaluation.provenance import RECORD
from diet_mt.models._roberta_options import plain_options, sentence_config


@pytest.mark.parametrize(
    ("arch", "given", "expected"),
    [
        ("roberta_diet_abs_base", {"position_rank": 64}, 64),
        ("roberta_diet_abs_base", {}, None),  # that of the architecture
        ("roberta_diet_abs_base", {"position_rank": 128}, None),
        ("roberta_diet_abs_base", {"position_encoding": "concat", "position_rank": 128}, 128),
        ("roberta_diet_rel_base", {"position_encoding": "diet-abs", "position_rank": 64}, 64),
        ("roberta_diet_rel_base", {}, None),
    ],
)
def test_the_rank_is_said_where_it_is_not_the_architectures(
    arch: str, given: dict[str, Any], expected: int | None
) -> None:
    diet_mt.register()
    model = Namespace(**given)
    ARCH_CONFIG_REGISTRY[arch](model)
    (text, *_) = sentence_config(plain_options(model)).signatures()
    positions = own_positions(text, arch)
    assert (positions["encoding"], positions.get("rank")) == (model.position_encoding, expected)
    assert positions["scale"] == "head"


def test_the_pretrained_model_is_that_of_the_record(tmp_path: Path) -> None:
    """A path in the checkpoint is not opened: here it is a device that never ends."""
    best = tmp_path / "best.pt"
    saved = {"checkpoint": {"finetune_from_model": "/dev/zero"}}
    facts = {"pretrained_sha256": "a" * 64, "pretrain_updates": 7, "pretrain_perplexity": 2.5}
    with pytest.raises(UserError, match=r"/dev/zero.*--pretrained"):
        pretrained_of(best, saved)
    (tmp_path / RECORD).write_text(json.dumps(facts))
    assert pretrained_of(best, saved) == facts
    nothing = {"pretrained_sha256": "", "pretrain_updates": 0, "pretrain_perplexity": 0.0}
    assert pretrained_of(best, {"checkpoint": {"finetune_from_model": None}}) == nothing
    (tmp_path / RECORD).write_text("{}")
    with pytest.raises(UserError, match=RECORD):
        pretrained_of(best, saved)
