"""Named architectures ``<encoding>_<size>``, of every size and every registered encoding."""

from typing import Any, Callable, Dict, Optional

from fairseq.models import register_model_architecture
from fairseq.utils import safe_getattr

from ..positions import NAMES, OPTIONS

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
# base: Devlin et al. 2018, section 3; small: Turc et al. 2019, table 1. tiny: the width of the tiny
# Transformer, with BERT's ratio of feed-forward size to width.
ROBERTA_SIZES: Dict[str, Dict[str, Any]] = {
    "tiny": {"layers": 4, "embed_dim": 128, "ffn_embed_dim": 512, "attention_heads": 4},
    "small": {"layers": 4, "embed_dim": 512, "ffn_embed_dim": 2048, "attention_heads": 8},
    "base": {"layers": 12, "embed_dim": 768, "ffn_embed_dim": 3072, "attention_heads": 12},
}


def preset(encoding: str, size: str) -> Dict[str, Any]:
    """Default options of the architecture of ``encoding`` and ``size``."""
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


def register_architectures(model: str, prefix: str = "") -> None:
    """Registers ``<prefix><encoding>_<size>`` for every encoding and size."""
    for encoding in NAMES:
        for size in SIZES:
            name = prefix + architecture_name(encoding, size)
            register_model_architecture(model, name)(_filler(preset(encoding, size)))


def register_roberta_architectures(model: str) -> None:
    """Registers ``roberta_<encoding>_<size>`` for every encoding and size of BERT."""
    for name, encoding in NAMES.items():
        own = {OPTIONS[field].attribute: value for field, value in encoding.sentence_preset.items()}
        for size, values in ROBERTA_SIZES.items():
            given = {f"encoder_{field}": value for field, value in values.items()}
            arch = f"roberta_{architecture_name(name, size)}"
            fill = _filler({**given, "position_encoding": name}, own)
            register_model_architecture(model, arch)(fill)


def _filler(values: Dict[str, Any], own: Optional[Dict[str, Any]] = None) -> Callable[[Any], None]:
    """A function that sets the defaults ``values``, and ``own`` if the user keeps the encoding."""

    def fill(args: Any) -> None:
        _fill(args, values)
        # Another encoding may not have these options.
        if own and args.position_encoding == values["position_encoding"]:
            _fill(args, own)

    return fill


def _fill(args: Any, values: Dict[str, Any]) -> None:
    for name, value in values.items():
        # In omegaconf before 2.1, a missing option of a restored configuration is None.
        setattr(args, name, safe_getattr(args, name, value))
