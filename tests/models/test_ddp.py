"""Distributed training: torch's DistributedDataParallel, one process, gloo.

One process is enough to see what breaks it: parameters that get no gradient, or get it twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from .. import toy_sentences
from ..toy import build, each_kind
from .test_training import assert_same_gradients, gradients


@pytest.fixture(scope="module")
def _one_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    meeting_point: Path = tmp_path_factory.mktemp("gloo") / "store"
    distributed.init_process_group("gloo", init_method=meeting_point.as_uri(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("_one_process")
@each_kind
def test_gradients_equal_those_of_one_plain_process(encoding: str, sharing: str | None) -> None:
    assert_one_process_changes_nothing(encoding, sharing)


def test_gradients_of_checkpointed_layers_which_run_twice() -> None:
    assert_one_process_changes_nothing("tupe-rel", "head-wise", checkpoint_activations=True)


def assert_one_process_changes_nothing(encoding: str, sharing: str | None, **options: bool) -> None:
    expected = gradients(build(encoding, sharing))
    wrapped = DistributedDataParallel(build(encoding, sharing, **options))
    for _ in range(2):  # an unused parameter is noticed in the step after
        found = gradients(wrapped)
        assert_same_gradients(
            {name.removeprefix("module."): value for name, value in found.items()}, expected
        )
        torch.optim.SGD(wrapped.parameters(), lr=0.0).step()


def of_masked_words(model: nn.Module) -> dict[str, Tensor]:
    """Gradients of one step of masked_lm."""
    model.zero_grad()
    given = toy_sentences.batch("left")
    masked = given["src_tokens"].gt(20)
    model(**given, masked_tokens=masked)[0].sin().sum().backward()
    return {
        name.removeprefix("module."): parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


@pytest.mark.usefixtures("_one_process")
@toy_sentences.each_kind
def test_gradients_of_an_encoder_equal_those_of_one_plain_process(
    encoding: str, sharing: str | None, segments: str
) -> None:
    case = encoding, sharing, segments
    expected = of_masked_words(toy_sentences.build(*case))
    wrapped = DistributedDataParallel(
        toy_sentences.build(*case, checkpoint_activations=segments == "input")
    )
    for _ in range(2):  # an unused parameter is noticed in the step after
        assert_same_gradients(of_masked_words(wrapped), expected)
        torch.optim.SGD(wrapped.parameters(), lr=0.0).step()
