"""--bf16 asks for a TPU only where there is a driver for one."""

from __future__ import annotations

from argparse import Namespace

import pytest
from fairseq.dataclass import utils
from fairseq.options import get_training_parser, parse_args_and_arch

from diet_mt.fairseq_patches import bfloat16


@pytest.mark.parametrize(
    ("given", "driver", "expected"),
    [
        ({"bf16": True, "tpu": True}, None, False),
        ({"bf16": True, "tpu": True}, "torch_xla", True),
        ({"bf16": False, "tpu": True}, None, True),  # --tpu alone: fairseq says what is missing
        ({"tpu": False}, None, False),
    ],
)
def test_what_the_flags_become(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, bool], driver: str | None, expected: bool
) -> None:
    monkeypatch.setattr(bfloat16, "find_spec", lambda _: driver)
    assert bfloat16.without_tpu(lambda args: args.tpu)(Namespace(**given)) is expected


def test_the_configuration_of_a_training() -> None:
    """Through fairseq's own parser, which is what would set the TPU."""
    words = ["data", "--arch", "diet_rel_tiny", "--bf16"]
    args = parse_args_and_arch(get_training_parser(), words)
    assert args.tpu
    cfg = utils.convert_namespace_to_omegaconf(args)
    assert (cfg.common.bf16, cfg.common.tpu) == (True, False)
    assert not cfg.distributed_training.tpu
