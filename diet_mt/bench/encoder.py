"""Cost (table 1) and parameters (table 6) of the encoders of Chen et al. 2021."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from ..evaluation.fairseq_options import quiet
from ..models.architectures import architecture_name
from ..models.diet_roberta import DietRobertaModel
from ..positions import NAMES
from ..report.blocks import Table, markdown_table
from ..system.options import need_known
from .commands import BASELINES, Encoder
from .rows import Record, environment, interleaved, need_device, quartiles, ratios
from .worker import clocked

# Shaw et al. as in the paper: vectors on keys and values. Over 512 tokens, 511 would be unclipped,
# but the number of parameters in table 6 corresponds to 1,023.
SHAW = {"position_clip": 1023, "position_values": True}
# Options of the paper's models; by default, segments are at the input.
MODELS: dict[str, dict[str, Any]] = {
    "diet-abs": {"segment_encoding": "per-head"},
    "diet-rel": {"segment_encoding": "per-head"},
    "shaw": SHAW,
}
BATCHES = {"small": 8, "base": 2}  # sentences, for steps of about a second on two cores
POSITIONS, VOCABULARY, MASKED = 512, 30_000, 0.15

# Table 6: encoder, options, and the paper's values, English and multilingual: parameters, with the
# difference to the first row, and the average score.
_SHARED = {"position_sharing": "layer-wise"}
_OWN = {"position_sharing": "none"}
TABLE_6: dict[str, tuple[str, dict[str, Any], str]] = {
    "Devlin et al. (2018)": ("learned", {}, "110.1M, 84.8, 178.9M, 55.3"),
    "Shaw et al. (2018)": ("shaw", {}, "112.9M +2.5%, 85.2, 181.7M +1.7%, 57.9"),
    "DIET-REL": ("diet-rel", {}, "109.9M +0.0%, 85.2, 178.7M +0.0%, 58.0"),
    "DIET-REL (share)": ("diet-rel", _SHARED, "109.7M +0.0%, 85.0, 178.5M +0.0%, 57.3"),
    "DIET-ABS (rank 128)": ("diet-abs", _OWN, "128.6M +16.8%, 85.3, 197.4M +10.0%, 56.8"),
    "DIET-ABS (rank 128, share)": ("diet-abs", {}, "111.3M +1.1%, 85.2, 180.1M +0.6%, 58.9"),
}
# Vocabularies in table 6: BERT's uncased one, and the 120,000 pieces of section 4.2.
VOCABULARIES = {"English": 30522, "multilingual": 120000}


def make_bert(
    encoding: str, size: str = "base", vocabulary: int = VOCABULARY, **options: Any
) -> DietRobertaModel:
    """The paper's BERT with reproducible random weights; ``options`` override the paper's."""
    words = Dictionary()
    for number in range(vocabulary - len(words)):
        words.add_symbol(str(number))
    usual = {"segment_encoding": "input", "max_source_positions": POSITIONS}
    args = Namespace(**{**usual, **MODELS.get(encoding, {}), **options})
    ARCH_CONFIG_REGISTRY[f"roberta_{architecture_name(encoding, size)}"](args)
    torch.manual_seed(1)
    model: DietRobertaModel = DietRobertaModel.build_model(
        args, Namespace(source_dictionary=words, target_dictionary=words)
    )
    return model


def make_steps(
    model: DietRobertaModel, tokens: Tensor, masked: Tensor
) -> dict[str, Callable[[], None]]:
    """The functions ``train`` and ``forward``, each for one step over ``tokens`` (B, S).

    The second half of ``tokens`` is the second segment. ``masked``: (B, S), tokens to predict.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    segments = torch.arange(tokens.size(1), device=tokens.device).ge(tokens.size(1) // 2)
    segments = segments.long().expand_as(tokens)

    def train() -> None:
        model.train()
        logits, _ = model(tokens, masked_tokens=masked, segment_ids=segments)  # (masked, V)
        F.cross_entropy(logits, tokens[masked]).backward()
        optimizer.step()
        optimizer.zero_grad()

    @torch.no_grad()
    def forward() -> None:
        model.eval()
        model(tokens, features_only=True, segment_ids=segments)

    return {"train": train, "forward": forward}


def measure_all(args: Encoder) -> None:
    """Prints a record for each shape, encoding and measure of ``diet-mt bench encoder``."""
    quiet()
    need_known("encoding", args.encodings, NAMES)
    need_device(args.device)
    facts = environment(args.device, "bench encoder", args.words)
    for shape in args.shapes:
        for record in measure(shape, args):
            print(json.dumps({**record, **facts}), flush=True)


def measure(shape: str, args: Encoder) -> Iterator[Record]:
    """Records of each encoding, which takes turns with its baseline."""
    size = args.batch or BATCHES[shape], args.tokens
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, VOCABULARY, size, generator=generator).to(args.device)
    masked = torch.rand(size, generator=generator).lt(MASKED).to(args.device)
    learned = BASELINES[0]
    others = [name for name in args.encodings or NAMES if name != learned]
    for name in (learned, *others):
        at_input = {"segment_encoding": "input"}
        baseline = (learned, {}) if args.over == learned else (name, at_input)
        steps = {}
        for role, (encoding, options) in {"baseline": baseline, "own": (name, {})}.items():
            model = make_bert(encoding, shape, VOCABULARY, **options)
            steps[role] = make_steps(model.to(args.device), tokens, masked)
        for kind in args.measures:
            turns = {role: partial(clocked, own[kind], args.device) for role, own in steps.items()}
            label = f"{shape} {args.device} {name} {kind}"
            seconds = interleaved(turns, args.rounds, args.warmup, label)
            about: Record = {"shape": shape, "encoding": name, "over": args.over, "measure": kind}
            about |= {"batch": size[0], "tokens": size[1], "rounds": args.rounds}
            numbers = quartiles("ms_", [1000 * value for value in seconds["own"]])
            yield {**about, **numbers, **ratios(seconds["own"], seconds["baseline"])}


def parameters(encoding: str, vocabulary: int, **options: Any) -> int:
    """Number of parameters of BERT base, including the pooler, for 512 tokens."""
    # Not torch.device("meta"), because fairseq always draws initial weights on the CPU.
    with FakeTensorMode():
        model = make_bert(encoding, "base", vocabulary, **options)
        # The pooler is the dense layer of a classification head.
        model.register_classification_head("pooled", num_classes=2)
        out = model.classification_heads["pooled"].out_proj
        return sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in out.parameters())


def table_6() -> str:
    """Markdown table of parameters in millions, ours and the paper's, with the paper's scores."""
    rows, first = [], list[int]()
    for label, (encoding, options, printed) in TABLE_6.items():
        counts = [parameters(encoding, size, **options) for size in VOCABULARIES.values()]
        first = first or counts
        ours = [
            f"{own / 1e6:.2f}M {own / baseline - 1:+.1%}"
            for own, baseline in zip(counts, first, strict=True)
        ]
        paper = printed.split(", ")
        rows.append([label, ours[0], *paper[:2], ours[1], *paper[2:]])
    english, many = ((name, f"{name}, printed") for name in VOCABULARIES)
    heads = ["encoder", *english, "GLUE, printed", *many, "XTREME, printed"]
    return markdown_table(Table(heads, rows))
