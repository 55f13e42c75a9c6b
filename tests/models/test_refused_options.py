"""Options that no model can have: one line that says which, why, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.positions import NAMES

from ..toy import build

# Options of fairseq that would lead positions past the one path that carries them.
REFUSED: dict[str, Any] = {
    "no_token_positional_embeddings": True,
    "encoder_learned_pos": True,
    "decoder_learned_pos": True,
    "cross_self_attention": True,
    "encoder_xformers_att_config": "x",
    "decoder_xformers_att_config": "x",
    "base_layers": 1,
}

SMALLEST = ("embed_dim", "attention_heads")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"position_encoding": "diet_rel"},
            "--position-encoding diet_rel: unknown; choose from " + ", ".join(sorted(NAMES)),
        ),
        # All of what an encoding refuses: tests/positions/test_registry.py.
        (
            {"position_encoding": "none", "position_clip": 8},
            "--position-clip 8: none has no such option; leave it out (it belongs to deberta,",
        ),
        (
            {"position_encoding": "shaw", "position_clip": 0},
            "--position-clip 0: must be at least 1",
        ),
        *[
            (
                {"position_encoding": "concat", **given},
                f"concat: positions of width {width} (--position-rank) leave no room for the words",
            )
            for width, given in (
                (12, {"position_rank": 12}),
                (1, {f"{side}_{part}": 1 for side in ("encoder", "decoder") for part in SMALLEST}),
            )
        ],
        (
            {"position_encoding": "rotary", "encoder_embed_dim": 15},
            "a head size of 5 is odd; change --*-embed-dim or --*-attention-heads",
        ),
        ({"position_sharing": "heads"}, "--position-sharing heads: choose from none, head-wise"),
        (
            {"position_encoding": "learned", "position_sharing": "head-wise"},
            "--position-sharing head-wise: learned has no parameters per head",
        ),
        ({"attention_scale": "key"}, "--attention-scale key: choose from head, model"),
        (
            {"encoder_embed_dim": 14},
            "--encoder-embed-dim 14 is not a multiple of --encoder-attention-heads 3",
        ),
        (
            {"decoder_attention_heads": 5},
            "--decoder-embed-dim 16 is not a multiple of --decoder-attention-heads 5",
        ),
        (
            {"position_encoding": "sinusoidal", "encoder_embed_dim": 15},
            "an even --encoder-embed-dim and --decoder-embed-dim, not 15",
        ),
        (
            {"decoder_output_dim": 14, "share_decoder_input_output_embed": True},
            "--decoder-output-dim 14: embeddings tied to the output are 16 wide",
        ),
        ({"encoder_attention_heads": 0}, "--encoder-attention-heads 0: must be at least 1"),
        ({"decoder_layers": 0}, "--decoder-layers 0: must be at least 1"),
        ({"encoder_embed_dim": -12}, "--encoder-embed-dim -12: must be at least 1"),
        ({"max_target_positions": 0}, "--max-target-positions 0: must be at least 1"),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if type(value) is dict else "",
)
def test_options_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        build(changes.pop("position_encoding", "diet-rel"), **changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", REFUSED)
def test_options_of_fairseq_that_lead_past_positions_are_refused(name: str) -> None:
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(UserError, match=f"^{flag}: .*(use --position-encoding .*|leave it out)$"):
        build("none", **{name: REFUSED[name]})


def test_all_problems_are_reported_together() -> None:
    wrong: dict[str, Any] = {
        "encoder_embed_dim": 14,
        "decoder_attention_heads": 5,
        "attention_scale": "key",
        "position_rank": -3,
        "position_sharing": "heads",
        "encoder_learned_pos": True,
    }
    with pytest.raises(UserError) as error:
        build("diet-abs", wrong.pop("position_sharing"), **wrong)
    text = str(error.value)
    for name in wrong:
        assert f"--{name.replace('_', '-')}" in text
    assert "--position-sharing heads" in text
    assert "\n" not in text
