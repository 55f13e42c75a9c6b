"""A grown model computes what the small one does."""

from __future__ import annotations

import pytest
import torch

from tests import toy
from tools.grow import Growth

SMALL = {"layers": 2, "embed_dim": 16, "ffn_embed_dim": 12, "attention_heads": 2}
LARGE = {"layers": 4, "embed_dim": 64, "ffn_embed_dim": 36, "attention_heads": 4}


def _of_size(encoding: str, size: dict[str, int], seed: int) -> torch.nn.Module:
    both = {f"{side}_{name}": size[name] for name in size for side in ("encoder", "decoder")}
    model = toy.build(encoding, seed=seed, share_all_embeddings=True, **both)
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():  # norms and biases begin as ones and zeros
        if name.endswith("bias") or "layer_norm" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    for module in model.modules():  # each norm of a layer that adds nothing would shrink a little
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 0.0
    return model.eval()


@pytest.mark.parametrize("encoding", ["none", "diet-rel", "diet-abs"])
def test_computes_the_same(encoding: str) -> None:
    small, large = _of_size(encoding, SMALL, 1), _of_size(encoding, LARGE, 2)
    large.load_state_dict(Growth(SMALL, LARGE).state(small.state_dict()))
    source, target = toy.collate(toy.sources()), toy.collate(toy.targets())
    lengths = torch.tensor(toy.SOURCE_LENGTHS)
    with torch.no_grad():
        ours, theirs = (model(source, lengths, target)[0] for model in (large, small))
    assert torch.allclose(ours, theirs, atol=1e-9)


def test_other_encodings() -> None:
    shaw = _of_size("shaw", SMALL, 1)
    with pytest.raises(SystemExit, match="growing it is not known"):
        Growth(SMALL, LARGE).state(shaw.state_dict())
