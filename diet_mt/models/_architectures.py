"""Named architectures ``<encoding>_<size>``, from one table of sizes and the registry of
encodings.
"""

from typing import Any, Callable, Dict

from fairseq.models import register_model_architecture
from fairseq.utils import safe_getattr

from ..positions import NAMES

# base and big: Vaswani et al. 2017, table 3. tiny: small enough for two processor cores.
SIZES: Dict[str, Dict[str, Any]] = {
    "tiny": {"layers": 4, "embed_dim": 128, "ffn_embed_dim": 256, "attention_heads": 4},
    "base": {"layers": 6, "embed_dim": 512, "ffn_embed_dim": 2048, "attention_heads": 8},
    "big": {
        "layers": 6,
        "embed_dim": 1024,
        "ffn_embed_dim": 4096,
        "attention_heads": 16,
        "dropout": 0.3,
    },
}


def preset(encoding: str, size: str) -> Dict[str, Any]:
    """What the architecture of ``encoding`` and ``size`` sets where the user does not."""
    values: Dict[str, Any] = {"position_encoding": encoding}
    for name, value in SIZES[size].items():
        if name == "dropout":
            values[name] = value
        else:
            values[f"encoder_{name}"] = values[f"decoder_{name}"] = value
    return values


def architecture_name(encoding: str, size: str) -> str:
    """``diet-rel``, ``tiny`` -> ``diet_rel_tiny``."""
    return f"{encoding.replace('-', '_')}_{size}"


def register_architectures(model: str) -> None:
    """Registers every encoding in every size for ``model``."""
    for encoding in NAMES:
        for size in SIZES:
            register = register_model_architecture(model, architecture_name(encoding, size))
            register(_filler(preset(encoding, size)))


def _filler(values: Dict[str, Any]) -> Callable[[Any], None]:
    def fill(args: Any) -> None:
        for name, value in values.items():
            # fairseq's getter: before omegaconf 2.1 a missing option of a restored configuration
            # reads as None.
            setattr(args, name, safe_getattr(args, name, value))

    return fill
