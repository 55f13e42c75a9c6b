"""Attention of trained models, recorded by hooks on attention modules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data.data_utils import collate_tokens
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.utils import split_paths
from torch import Tensor

from ..corpora.binarized import language_pair, read_index
from ..evaluation.checkpoint import load_with_task
from ..evaluation.options import BEST, best_in
from ..evaluation.records import system_of
from ..layers.decoder import DietDecoder
from ..layers.encoder import DietEncoder
from ..layers.multihead import AttentionCall, PositionalAttention
from ..positions import CROSS, DECODER, ENCODER, KINDS
from ..system.errors import UserError
from ..system.files import need_once

TITLES = {
    ENCODER: "encoder self-attention",
    DECODER: "decoder self-attention",
    CROSS: "cross-attention",
}


@dataclass(frozen=True)
class System:
    """The model of a checkpoint, in evaluation mode, with fairseq's task.

    ``longest``: tokens for which all models opened together have positions. Models are in float64,
    since the rank of a matrix depends on its smallest singular values.
    """

    name: str
    arch: str
    model: Any
    task: Any
    longest: int

    @property
    def stacks(self) -> dict[str, Any]:
        """The encoder, and the decoder if there is one."""
        kinds = {DietEncoder: ENCODER, DietDecoder: DECODER}
        return {
            name: module
            for module in self.model.modules()
            for kind, name in kinds.items()
            if isinstance(module, kind)
        }

    @property
    def translates(self) -> bool:
        return isinstance(self.model, FairseqEncoderDecoderModel)

    @cached_property
    def trained(self) -> dict[str, tuple[int, int]]:
        """Kind of attention -> tokens of queries and of keys in the longest training sentences,
        including end-of-sentence symbols; empty if unknown, as of encoder-only models.
        """
        if not self.translates:
            return {}
        cfg, most = self.task.cfg, self.model.max_positions()
        folder = Path(split_paths(cfg.data)[0])
        try:
            pair = "-".join(language_pair(folder, "train"))
            sides = [
                read_index(folder / f"train.{pair}.{language}.idx").lengths
                for language in (cfg.source_lang, cfg.target_lang)
            ]
        except UserError:
            return {}
        used = np.logical_and(*(side <= limit for side, limit in zip(sides, most, strict=True)))
        if not used.any():
            return {}
        source, target = (int(side[used].max()) for side in sides)
        return {ENCODER: (source, source), DECODER: (target, target), CROSS: (target, source)}

    def modules(self) -> dict[tuple[str, int], PositionalAttention]:
        """Kind of attention and layer (from 0) -> attention module."""
        modules: dict[tuple[str, int], PositionalAttention] = {}
        for name, stack in self.stacks.items():
            for number, layer in enumerate(stack.layers):
                modules[name, number] = layer.self_attn
                if getattr(layer, "encoder_attn", None) is not None:
                    modules[CROSS, number] = layer.encoder_attn
        return dict(sorted(modules.items(), key=lambda item: (KINDS.index(item[0][0]), item[0][1])))


@dataclass(frozen=True)
class AttentionRecord:
    """One call of one attention module: ``kind`` of attention, ``layer`` (from 0), and inputs.

    ``query``: (T, B, E); ``source``: (S, B, E'), or None in self-attention.
    """

    kind: str
    layer: int
    module: PositionalAttention
    query: Tensor
    source: Tensor | None
    call: AttentionCall

    def place(self, system: System, head: int) -> dict[str, Any]:
        """Fields of a row about ``head`` (from 0)."""
        place = {"system": system.name, "arch": system.arch, "attention": self.kind}
        return {**place, "layer": self.layer + 1, "head": head + 1}

    def weights(self) -> Tensor:
        """Attention weights with all masks: (B, H, T, S)."""
        return self._logits(self.call).softmax(-1)

    def logits(self) -> Tensor:
        """Logits without masks: (B, H, T, S)."""
        return self._logits(replace(self.call, key_padding=None, causal=False))

    def positional(self, *, segments: bool = False) -> Tensor:
        """Terms of positions (and, with ``segments``, of segments) in :meth:`logits`, without
        q k^T: (B, H, T, S), 0 if there are none.
        """
        given = self.call.segments if segments else None
        call = replace(self.call, key_padding=None, causal=False, segments=given)
        return self._logits(call, words=False)

    @property
    @torch.no_grad()
    def columns(self) -> int:
        """Width of queries and keys in their product, at least the head size."""
        queries = self.module.split(self.module.q_proj(self.query))
        return self.call.positions.queries(queries).size(-1)

    @torch.no_grad()
    def _logits(self, call: AttentionCall, words: bool = True) -> Tensor:
        return self.module.logits(self.query, self.source, call, words=words)


def open_systems(checkpoints: Sequence[Path], data: Path) -> list[System]:
    """Systems of checkpoints, with the binarized folder ``data``.

    ``checkpoints``: files, or folders with a ``checkpoint_best.pt``. Systems of equal names get the
    names of their folders and files. Raises :class:`UserError` for models of other packages, and
    for weights that are not finite.
    """
    files = [best_in(path) for path in checkpoints]
    need_once(files)
    loaded = [load_with_task(file, data) for file in files]
    # max_positions() is a single number in encoder-only models.
    longest = min(int(np.min(model.max_positions())) for model, _, _ in loaded)
    archs = [str(cfg["model"]["_name"]) for _, cfg, _ in loaded]
    names = [system_of(arch) for arch in archs]
    ends = _ends([file.resolve() for file in files])
    systems = []
    for number, (model, _, task) in enumerate(loaded):
        own = names[number] if names.count(names[number]) == 1 else ends[number]
        system = System(own, archs[number], model.double().cpu().eval(), task, longest)
        if not system.stacks:
            raise UserError(f"{files[number]}: not an architecture of diet-mt: {archs[number]}")
        if not all(each.isfinite().all() for each in model.parameters()):
            raise UserError(f"{files[number]}: weights are not finite; the training has diverged")
        systems.append(system)
    return systems


def _ends(files: Sequence[Path]) -> list[str]:
    """The shortest distinct suffixes of the paths, including the folder: ``diet_rel.1`` for its
    best checkpoint, ``diet_rel.1.checkpoint_last`` for another.
    """
    for depth in range(1, max(len(file.parts) for file in files)):
        ends = [
            ".".join([*file.parent.parts[-depth:], *[file.stem] * (file.name != BEST)])
            for file in files
        ]
        if len(set(ends)) == len(files):
            break
    return ends


def fitting(system: System, tokens: int, what: str) -> int:
    """``tokens``, reduced to the maximum of all models with a line on stderr."""
    if tokens > system.longest:
        reason = "no more have positions in every one of these models"
        print(f"{what}: over {system.longest} tokens, not {tokens}: {reason}", file=sys.stderr)
    return min(tokens, system.longest)


@torch.no_grad()
def record(system: System, given: dict[str, Tensor]) -> list[AttentionRecord]:
    """All calls of attention in a forward pass with arguments ``given``, in the order encoder,
    decoder, cross-attention, each by layer.
    """
    calls: dict[tuple[str, int], AttentionRecord] = {}
    with ExitStack() as hooks:
        for place, module in system.modules().items():

            def note(module: Any, inputs: Any, place: tuple[str, int] = place) -> None:
                calls[place] = AttentionRecord(*place, module, *inputs)

            hooks.enter_context(module.register_forward_pre_hook(note))
        system.model(**given)
    return [calls[place] for place in system.modules()]


def added_rows(stack: Any, count: int) -> Tensor:
    """Vectors that a stack adds to its first n = ``count`` tokens in evaluation: (1, n, E)."""
    rows: Tensor = stack.embed_positions.rows(stack.token_positions.at(0, count))
    return rows.detach().double()


def sentences(system: System, subset: str, count: int) -> dict[str, Tensor]:
    """Arguments of the forward pass for the first ``count`` sentences of a split that fit into all
    models, padded on the right. Raises :class:`UserError` without any.
    """
    pairs = [pair for pair in _pairs(system, subset) if max(map(len, pair)) <= system.longest]
    if not pairs:
        raise UserError(
            f"{subset}: no sentence of up to {system.longest} tokens, for which all of these "
            "models have positions; give another --subset"
        )
    return _arguments(system, list(zip(*pairs[:count], strict=True)))


def joined(system: System, subset: str, tokens: int, count: int) -> dict[str, Tensor]:
    """Arguments of the forward pass for up to ``count`` rows of ``tokens`` tokens: concatenated
    sentences of a split, because ranks differ only in large matrices.
    """
    sides = [
        torch.cat([sentence[:-1] for sentence in side])
        for side in zip(*_pairs(system, subset), strict=True)
    ]
    least = min(map(len, sides))
    count = min(count, least // tokens)
    if count == 0:
        raise UserError(f"{subset}: {least:,} tokens, {tokens} are needed; give another --subset")
    symbols = system.task.source_dictionary
    rows = [words[: tokens * count].view(count, tokens).clone() for words in sides]
    for cut in rows:
        cut[:, -1] = symbols.eos()
        if not system.translates:
            cut[:, 0] = symbols.bos()
    return _arguments(system, [list(cut) for cut in rows])


def need_split(system: System, subset: str) -> None:
    """Loads a split once. Raises :class:`UserError` if it does not exist."""
    if subset in system.task.datasets:
        return
    try:
        system.task.load_dataset(subset)
    except FileNotFoundError:
        raise UserError(f"{system.task.cfg.data}: no split '{subset}'") from None


def _pairs(system: System, subset: str) -> list[tuple[Tensor, ...]]:
    """Source and target (or tokens, if encoder-only) of each sentence, with end symbols."""
    need_split(system, subset)
    dataset = system.task.dataset(subset)
    names = ("source", "target") if system.translates else ("net_input.src_tokens",)
    items = (dataset[number] for number in range(len(dataset)))
    return [tuple(item[name] for name in names) for item in items]


def _arguments(system: System, sides: Sequence[Sequence[Tensor]]) -> dict[str, Tensor]:
    symbols = system.task.source_dictionary
    source = collate_tokens(list(sides[0]), symbols.pad(), left_pad=False)
    if len(sides) == 1:
        return {"src_tokens": source}
    moved = collate_tokens(
        list(sides[1]), symbols.pad(), symbols.eos(), left_pad=False, move_eos_to_beginning=True
    )
    lengths = source.ne(symbols.pad()).sum(1)
    return {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": moved}
