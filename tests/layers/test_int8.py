"""Models whose linear layers are in int8."""

from __future__ import annotations

from argparse import Namespace

import pytest
import torch
from torch import nn

from diet_mt import kernels
from diet_mt.decoding.generator import BeamSearchGenerator
from diet_mt.layers.int8 import Int8Linear, joined, quantize_
from diet_mt.nn.linear import Linear
from diet_mt.system.errors import UserError
from diet_mt.tasks.diet_translation import DietTranslationConfig

from ..models.test_search import SequenceGenerator, search, talkative
from ..toy import build, collate, each_encoding, sources, targets

# Of a log-probability: roundings in float32 may become steps of int8.
STEP = 0.02


@each_encoding
@torch.no_grad()
def test_every_linear_layer_of_a_model(encoding: str, sharing: str | None) -> None:
    exact = build(encoding, sharing).float().eval()
    model = quantize_(build(encoding, sharing).float())
    linear = {name for name, each in exact.named_modules() if isinstance(each, nn.Linear)}
    assert linear == {name for name, each in model.named_modules() if type(each) is Int8Linear}
    assert not any(each.requires_grad for each in model.parameters())
    given = collate(sources(), "left"), None, collate(targets())
    logits, expected = model(*given)[0], exact(*given)[0]
    assert (logits - expected).pow(2).mean() < 0.05**2 * expected.var()


@torch.no_grad()
def test_layers_over_one_input_are_one_product() -> None:
    x = torch.randn(2, 5, 12)
    for widths, count in (((16, 32), 1), ((16, 20), 2)):
        layers = [Int8Linear.of(nn.Linear(12, width, bias=width != 32)) for width in widths]
        together = joined(layers)
        assert len(together) == count
        expected = torch.cat([layer(x) for layer in layers], dim=-1)
        assert torch.equal(torch.cat([layer(x) for layer in together], dim=-1), expected)


@pytest.mark.usefixtures("either_memory")
@pytest.mark.parametrize("encoding", ["diet-rel", "rotary"])
def test_a_search(encoding: str) -> None:
    """Ours and fairseq's translate alike, and a sentence alone as in a batch."""
    model = quantize_(talkative(encoding, None).float())
    rows = sources()
    together = search(BeamSearchGenerator, model, collate(rows, "left"))
    alone = [search(BeamSearchGenerator, model, torch.tensor([row]))[0] for row in rows]
    theirs = search(SequenceGenerator, model, collate(rows, "left"))
    for own, *others in zip(together, alone, theirs, strict=True):
        for other in others:
            assert torch.equal(own[0]["tokens"], other[0]["tokens"])
            for one, two in zip(own, other, strict=True):
                torch.testing.assert_close(one["score"], two["score"], rtol=0, atol=STEP)


def test_the_option_of_the_task() -> None:
    for chosen in (False, True):
        model = build("diet-rel").float()
        task = DietTranslationConfig(int8=chosen)
        model.prepare_for_inference_(Namespace(task=task, generation=Namespace(beam=4)))
        kind = Int8Linear if chosen else Linear
        assert type(model.decoder.output_projection) is kind


@pytest.mark.filterwarnings("ignore:torch.ao")
def test_what_int8_is_not_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="float32"):
        quantize_(build("diet-rel"))
    with pytest.raises(TypeError, match=r"diet_mt\.layers\.int8\.quantize_"):
        torch.ao.quantization.quantize_dynamic(build("diet-rel"), {nn.Linear})
    monkeypatch.setattr(kernels, "compiled", lambda: False)
    with pytest.raises(UserError, match="make setup"):
        quantize_(build("diet-rel").float())
