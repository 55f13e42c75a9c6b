"""What a fine-tuned checkpoint says of its encoding."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

import diet_mt
from diet_mt.errors import UserError
from diet_mt.evaluation.fine_tuned import own_options
from diet_mt.evaluation.pretrained import started_from
from diet_mt.models._roberta_options import plain_options, sentence_config


@pytest.mark.parametrize(
    ("arch", "given", "said"),
    [
        ("roberta_diet_abs_base", {"position_rank": 64}, "64"),
        ("roberta_diet_abs_base", {}, None),  # that of the architecture
        ("roberta_diet_abs_base", {"position_rank": 128}, None),
        ("roberta_diet_abs_base", {"position_encoding": "concat", "position_rank": 128}, "128"),
        ("roberta_diet_rel_base", {"position_encoding": "diet-abs", "position_rank": 64}, "64"),
        ("roberta_diet_rel_base", {}, None),
    ],
)
def test_the_rank_is_said_where_it_is_not_the_architectures(
    arch: str, given: dict[str, Any], said: str | None
) -> None:
    diet_mt.register()
    model = Namespace(**given)
    ARCH_CONFIG_REGISTRY[arch](model)
    (text, *_) = sentence_config(plain_options(model)).signatures()
    name, options = own_options(text, arch)
    assert (name, options.get("rank")) == (model.position_encoding, said)
    assert options["scale"] == "head"


def test_the_pretrained_model_is_the_one_of_the_training(tmp_path: Path) -> None:
    def named(value: str | None) -> dict[str, Any]:
        return {"checkpoint": {"finetune_from_model": value}}

    file = tmp_path / "pre.pt"
    file.touch()
    assert started_from(tmp_path / "best.pt", named(str(file))) == file
    assert started_from(tmp_path / "best.pt", named(None)) is None
    with pytest.raises(UserError, match=r"best.pt: fine-tuned from gone.pt, .* --pretrained"):
        started_from(tmp_path / "best.pt", named("gone.pt"))
