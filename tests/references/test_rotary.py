"""Rotary against ``GPTJAttention`` of transformers (``models/gptj/modeling_gptj.py``), which also
rotates neighbouring columns; scaled frequencies against ``modeling_rope_utils.py``.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from diet_mt.positions import DECODER, AttentionShape
from diet_mt.positions.rotary import Rotary, RotaryPositions, RotaryTerms, rotate

from .outside import Lazy, causal_mask, like_theirs, modeling, transformers

gptj, rope = modeling("gptj"), Lazy("transformers.modeling_rope_utils")

B, H, T, D = 2, 3, 50, 8
E = H * D


@pytest.mark.parametrize("size", [2, 4, 8, 64, 128])
def test_tables_and_rotation(size: int) -> None:
    sin, cos = gptj.create_sinusoidal_positions(300, size).chunk(2, dim=1)  # (T, D/2), float32
    positions = RotaryPositions(AttentionShape(1, H, size, 300, 300, DECODER), Rotary()).double()
    (ours,) = positions.for_layers(range(300), range(300))
    assert isinstance(ours, RotaryTerms)
    # Their angles are float32, whose step near 300 is 3e-5.
    torch.testing.assert_close(ours.rotation.real.float(), cos, rtol=0, atol=4e-5)
    torch.testing.assert_close(ours.rotation.imag.float(), sin, rtol=0, atol=4e-5)
    # The same tables give the same rotation; theirs is of (B, T, H, D).
    x, cos, sin = torch.randn(B, H, 300, size).double(), cos.double(), sin.double()
    theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin[None], cos[None]).transpose(1, 2)
    torch.testing.assert_close(rotate(x, torch.complex(cos, sin)), theirs, rtol=0, atol=1e-14)


@pytest.mark.parametrize("columns", [D, D // 2])
def test_the_same_weights_make_the_same_attention(columns: int) -> None:
    config = transformers.GPTJConfig(
        n_positions=T, n_embd=E, n_head=H, rotary_dim=columns, attn_pdrop=0.0, resid_pdrop=0.0
    )
    theirs = gptj.GPTJAttention(config, layer_idx=0).eval()
    x = torch.randn(B, T, E)
    position_ids = torch.arange(T).expand(B, T)
    expected, expected_weights = theirs(
        x, attention_mask=causal_mask(T, x.dtype), position_ids=position_ids
    )
    projections = {f"{name}_proj": getattr(theirs, f"{name}_proj") for name in "qkv"}
    projections["out_proj"] = theirs.out_proj
    encoding = Rotary(fraction=columns / D)
    ours = RotaryPositions(AttentionShape(1, H, D, T, T, DECODER), encoding)
    out, weights = like_theirs(ours, x, projections, scale=D**-0.5)
    # All in float32, their angles too; weights are at most 1, outputs of the order of x.
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-5)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)


SIZES = (8, 16, 32, 64, 96, 128)


def scaled(
    kind: str, size: int, length: int, factor: float, sentence: int, fraction: float, **given: Any
) -> tuple[Tensor, float]:
    """Their frequencies (D/2,) for a sequence of ``sentence`` tokens, and their factor of queries
    and keys.
    """
    given |= {"rope_type": kind, "factor": factor, "partial_rotary_factor": fraction}
    if kind not in ("linear", "dynamic"):
        given["original_max_position_embeddings"] = length
    config = transformers.LlamaConfig(
        hidden_size=2 * size,
        num_attention_heads=2,
        max_position_embeddings=length,
        rope_parameters=given,
    )
    init = rope.ROPE_INIT_FUNCTIONS[kind]
    frequencies, longer = init(config, torch.device("cpu"), seq_len=sentence)
    return F.pad(frequencies, (0, size // 2 - len(frequencies))), longer


@pytest.mark.parametrize(("base", "fraction"), [(None, None), (500000.0, 0.5)])
@pytest.mark.parametrize("scaling", ["linear", "ntk", "dynamic", "yarn", "llama3", "longrope"])
def test_scaled_frequencies(scaling: str, base: float | None, fraction: float | None) -> None:
    """Frequencies and attention factor of each ``rope_type``.

    For a sequence s times as long as those of training, their dynamic NTK with factor s is NTK with
    factor s^2 - s + 1: our ``ntk`` is compared with that.
    """
    theta, share = base or 10000.0, fraction or 1.0
    for size, length, factor in product(SIZES, (24, 100, 1024, 4096), (1.0, 2.0, 4.0, 10.5, 32.0)):
        sentence = int(length * factor)
        more: dict[str, Any] = {"rope_theta": theta}
        options: dict[str, Any] = {"base": base, "fraction": fraction, "scaling": scaling}
        options["scaling_factor"] = factor
        if scaling == "ntk":
            options["scaling_factor"] = factor * factor - (factor - 1)
        elif scaling != "linear":
            options["trained_length"] = length
        if scaling == "llama3":
            more |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
        if scaling == "longrope":
            factors = [1 + pair / 3 for pair in range(int(share * size) // 2)]
            more |= {"long_factor": factors, "short_factor": factors}
            options["pair_factors"] = ",".join(map(str, factors))
        kind = "dynamic" if scaling == "ntk" else scaling
        theirs, longer = scaled(kind, size, length, factor, sentence, share, **more)
        ours = Rotary(**options)
        case = str((size, length, factor))
        frequencies = ours.frequencies(size, torch.tensor([sentence - 1]))[0].float()
        # Theirs are float32; in the ramp of Llama 3, rounding is multiplied by the factor.
        rounding = 1e-6 if scaling != "llama3" else 1e-5
        torch.testing.assert_close(frequencies, theirs, rtol=rounding, atol=0, msg=case)
        assert ours.attention_factor() == pytest.approx(longer, rel=1e-15), case
