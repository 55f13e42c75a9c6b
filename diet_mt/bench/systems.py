"""What the measurements compare: stock fairseq, each of our encodings, and other ways to decode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ..command_line import need_known
from ..decoding.choice import VARIABLE as SEARCH
from ..errors import UserError
from ..files import PLUGIN
from ..models._architectures import SIZES
from ..positions import COMMAND_NAMES

STOCK = "stock"  # fairseq's transformer, without the plugin
CTRANSLATE2 = "ctranslate2"  # on the weights of stock
# Our model under fairseq's own generator -> the system whose weights it has.
UNDER_FAIRSEQ = {f"{name}:fairseq": name for name in ("diet_rel", "diet_abs")}
SYSTEMS = (STOCK, *COMMAND_NAMES, CTRANSLATE2, *UNDER_FAIRSEQ)
# Peers, which only decode -> the system whose weights they have.
WEIGHTS_OF = {CTRANSLATE2: STOCK, **UNDER_FAIRSEQ}


def variants_beside(variants: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """All systems, with ``variants``: by a new name an encoding, and options of its model.

    Raises UserError for a name that is taken, for no encoding and for an unknown one.
    """
    for name, words in variants.items():
        if name in SYSTEMS:
            raise UserError(f"{name}: a system already; give the variant another name")
        if not words:
            raise UserError(f"{name}: no encoding; give {name}=ENCODING, and options after it")
        need_known("encoding", words[:1], COMMAND_NAMES, name)
    return *SYSTEMS, *variants


def label(system: str) -> str:
    """As tables have it."""
    name = UNDER_FAIRSEQ.get(system)
    return f"{name} (fairseq's search)" if name else system


def unavailable(system: str, device: str) -> str | None:
    """Why ``system`` cannot be measured here, or None."""
    if system == CTRANSLATE2 and find_spec("ctranslate2") is None:
        return "ctranslate2 is not installed (pip install --no-deps ctranslate2)"
    if system == CTRANSLATE2 and device != "cpu":
        return "it is measured on the CPU alone"
    return None


def model_words(system: str, sizes: dict[str, Any]) -> list[str]:
    """Options of fairseq-train for the model of ``system``, with shared embeddings.

    ``sizes``: ``layers``, ``embed_dim``, ``ffn_embed_dim``, ``attention_heads`` of both sides.
    """
    name = WEIGHTS_OF.get(system, system)
    words = ["--arch", "transformer" if name == STOCK else f"{name}_tiny"]
    for field, value in sizes.items():
        if field != "dropout":
            flag = field.replace("_", "-")
            words += [f"--encoder-{flag}", str(value), f"--decoder-{flag}", str(value)]
    return [*words, "--share-all-embeddings"]


def training_words(train_tokens: int, dropout: float, half: bool) -> list[str]:
    """Options of fairseq-train for a training step."""
    words = ["--dropout", str(dropout), "--max-tokens", str(train_tokens)]
    words += ["--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--lr", "0.0001"]
    words += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"]
    return words + (["--fp16"] if half else [])


def job(system: str, common: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The fields of ``bench.workload.Job``: ``common`` ones, and those of ``system``.

    ``words``: options of fairseq-train, of the model and the training.
    """
    stock = WEIGHTS_OF.get(system, system) == STOCK
    return {
        "words": [common.get("data") or "made-up", *words],
        "user_dir": None if stock else str(PLUGIN),
        "engine": CTRANSLATE2 if system == CTRANSLATE2 else "fairseq",
        **common,
    }


def benchmark_job(
    system: str, size: str, common: dict[str, Any], dropout: float, further: Sequence[str]
) -> dict[str, Any]:
    """The job of the benchmark for ``system`` of one of the named sizes.

    ``further``: options of fairseq-train beside the usual ones.
    """
    words = model_words(system, SIZES[size])
    words += training_words(common["train_tokens"], dropout, common["half"])
    return job(system, common, [*words, *further])


def environment(system: str) -> dict[str, str | None]:
    """Variables of the process of ``system``; None: not set there."""
    return {SEARCH: "fairseq" if system in UNDER_FAIRSEQ else None}
