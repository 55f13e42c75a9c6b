"""Export of the encoder and a decoding step of a translation model to torch.export and ONNX.

Each is one program for all sizes. There are K hypotheses for each of B sentences; other letters are
those of ``positions/base.py``.
"""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import torch
from torch import Tensor, nn

from ..layers.cache import Output, attend_by_sentence
from ..layers.decoder import source_of
from ..layers.multihead import AttentionCall, DecoderCall, for_layers
from ..layers.run import LayerCache, source_keys
from ..nn.attention import key_padding_bias
from ..nn.batch import RightPadded
from ..positions import AttentionPositions, PositionTerms, TokenPositions
from ..positions.position_ids import as_tensor
from ..system.errors import UserError
from ..system.files import write_text

# The version that torch's converter implements; others would be converted from it.
OPSET = 18


class IndexedPositions(TokenPositions):
    """The first ``longest`` positions of ``tokens`` as a tensor: a range has a fixed length."""

    def __init__(self, tokens: TokenPositions, longest: int) -> None:
        super().__init__()
        values = as_tensor(tokens.at(0, longest), torch.device("cpu"))
        self.register_buffer("values", values, persistent=False)

    def at(self, start: int, stop: int) -> Tensor:
        return self.get_buffer("values").index_select(0, torch.arange(start, stop))


class Encoder(nn.Module):
    """Keys and values of the source, for the cross-attention of all layers."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.encoder, self.positions = model.encoder, model.decoder.encoder_attn_positions
        self.targets = model.decoder.token_positions
        self.attention = nn.ModuleList(
            layer.encoder_attn for layer in model.decoder.layers.children()
        )
        for module in self.attention:  # used by the step only
            del module.q_proj, module.out_proj

    def forward(self, tokens: Tensor) -> Tuple[Tensor, ...]:
        """``tokens`` (B, S), right-padded -> key padding (B, S), and keys (B, H, S, D_k) and values
        (B, H, S, D) of each layer in turn.
        """
        padding = tokens.eq(self.encoder.padding_idx)
        source, key_padding, at = source_of(self.encoder.encode(RightPadded(tokens, padding, None)))
        assert source is not None
        assert key_padding is not None
        modules: Sequence[Any] = list(self.attention)
        parts = for_layers(self.positions, len(modules), self.targets.at(0, 1), at)
        pairs = source_keys(modules, parts, source, key_padding)
        return key_padding, *(each for pair in pairs for each in pair)


class StepCache:
    """Keys and values of each layer in turn, for one step; attends as
    :class:`~diet_mt.layers.cache.Cache` does.

    ``source``: (B, H, S, D_k) and (B, H, S, D), with the ``key_padding`` as a bias (B, 1, 1, S).
    ``target``: (B, K, H, T, D_k) and (B, K, H, T, D), to which the step adds a token.
    """

    source: Sequence[Tensor]
    target: List[Tensor]
    key_padding: Tensor

    def attend(
        self, layer: int, module: Any, q: Tensor, k: Tensor, v: Tensor, positions: PositionTerms
    ) -> Output:
        for number, new in enumerate((k, v), start=2 * layer):
            before = self.target[number]
            new = new.unflatten(0, before.shape[:2]).unsqueeze(3)  # (B, K, H, 1, D)
            self.target[number] = torch.cat([before, new], dim=3)
        keys, values = (each.flatten(0, 1) for each in self.target[2 * layer : 2 * layer + 2])
        bias = None if positions.bias is None else positions.bias[None]
        return attend_by_sentence(module, q, keys, values, positions, bias, group=1)

    def attend_source(
        self, layer: int, module: Any, q: Tensor, positions: PositionTerms, need_weights: bool
    ) -> Output:
        keys, values = self.source[2 * layer : 2 * layer + 2]
        bias = self.key_padding
        bias = bias if positions.bias is None else positions.bias + bias
        group = self.target[0].size(1)
        return attend_by_sentence(module, q, keys, values, positions, bias, group=group)


class Step(nn.Module):
    """A decoding step, which reads one token of each hypothesis."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.decoder, self.sources = model.decoder, model.encoder.token_positions
        self.cache = StepCache()
        self.caches = []
        for number, layer in enumerate(self.decoder.layers.children()):
            modules = layer.self_attn, layer.encoder_attn
            self.caches.append([LayerCache(self.cache, number, module) for module in modules])
            for module in modules:  # copied to the caches; those of the source are in the encoder
                del module.q_proj, module.k_proj, module.v_proj

    def past(self) -> List[Tuple[int, int]]:
        """(H, D_k) of the keys and (H, D) of the values of each layer in turn."""
        decoder, at = self.decoder, self.decoder.token_positions.at(0, 1)
        parts = for_layers(decoder.self_attn_positions, decoder.num_layers, at, at)
        sizes = []
        for part, layer in zip(parts, decoder.layers.children(), strict=True):
            heads, size = layer.self_attn.num_heads, layer.self_attn.head_dim
            keys = part.keys(torch.zeros(1, heads, 1, size), None)
            sizes += [(heads, keys.size(3)), (heads, size)]
        return sizes

    def forward(
        self, tokens: Tensor, parents: Tensor, padding: Tensor, *caches: Tensor
    ) -> Tuple[Tensor, ...]:
        """Log-probabilities (B, K, V), and the caches of the target with one more token.

        ``tokens``: (B, K), of hypotheses that continue the hypotheses ``parents`` (B, K) of the
        step before. ``padding``: (B, S), of the source. ``caches``: keys and values of the source,
        then of the target before the step, (B, K', H, T, D_k) and (B, K', H, T, D), of each layer.
        """
        decoder, cache, layers = self.decoder, self.cache, len(self.caches)
        length = caches[-1].size(3)
        sentences = torch.arange(tokens.size(0))[:, None]
        cache.source = caches[: 2 * layers]
        # No cache is reshaped while it may be empty: a size of 0 has another meaning in ONNX.
        cache.target = [each[sentences, parents] for each in caches[2 * layers :]]
        cache.key_padding = key_padding_bias(padding, caches[0].dtype)
        at = decoder.token_positions.at(length, length + 1)
        so_far = decoder.token_positions.at(0, length + 1)
        own = for_layers(decoder.self_attn_positions, layers, at, so_far)
        of_source = self.sources.at(0, padding.size(1))
        cross = for_layers(decoder.encoder_attn_positions, layers, at, of_source)
        calls = [
            DecoderCall(AttentionCall(own[n], cache=first), AttentionCall(cross[n], cache=second))
            for n, (first, second) in enumerate(self.caches)
        ]
        x, _, _ = decoder.run_layers(decoder.embed(tokens.flatten()[:, None], at), calls)
        x = x if decoder.project_out_dim is None else decoder.project_out_dim(x)  # (1, rows, E)
        logs = decoder.get_normalized_probs((decoder.output_layer(x), None), log_probs=True)[0]
        return logs.unflatten(0, tokens.shape), *cache.target


@torch.no_grad()
def save(model: Any, task: Any, kind: str, folder: Path) -> None:
    """Writes the programs, the dictionaries of ``task`` and a description to ``folder``.

    ``kind``: ``onnx`` or ``torch``. Raises :class:`UserError` for torch before 2.7.
    """
    if not hasattr(torch.compiler, "is_exporting"):
        raise UserError(f"torch {torch.__version__}: --format {kind} needs torch 2.7")
    # These log each of their passes, and that torchvision is missing.
    for name in ("onnx_ir", "onnxscript", "torch.onnx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    model = copy.deepcopy(model).eval().requires_grad_(False)
    lengths = model.encoder.max_source_positions, model.decoder.max_target_positions
    for stack, longest in zip((model.encoder, model.decoder), lengths, strict=True):
        stack.token_positions = IndexedPositions(stack.token_positions, longest)
    for module in model.modules():
        if isinstance(module, AttentionPositions):
            module.tabulate()
    layers, encoder, step = model.decoder.num_layers, Encoder(copy.deepcopy(model)), Step(model)
    sizes = step.past()

    def caches(name: str) -> List[str]:
        return [f"{name}_{part}_{number}" for number in range(layers) for part in ("key", "value")]

    # Sizes of the example are distinct, and above 1: programs would take 0 and 1 for constants.
    batch, now, before, source, target = map(
        torch.export.Dim, ("batch", "hypotheses", "previous", "source", "target")
    )
    tokens, words = torch.full((2, 5), 4), torch.full((2, 3), 4)
    past = [torch.zeros(2, 4, heads, 6, width) for heads, width in sizes]
    of_tokens, of_words = {0: batch, 1: source}, {0: batch, 1: now}
    shapes: Dict[str, Any] = {"tokens": of_words, "parents": of_words, "padding": of_tokens}
    shapes["caches"] = (
        *({0: batch, 2: source},) * (2 * layers),
        *({0: batch, 1: before, 3: target},) * (2 * layers),
    )
    outputs = ["padding", *caches("source")]
    inputs = ["tokens", "parents", *outputs, *caches("past")]
    results = ["log_probabilities", *caches("present")]
    for name, module, example, dynamic, names in (
        ("encoder", encoder, (tokens,), {"tokens": of_tokens}, (["tokens"], outputs)),
        ("decoder", step, (words, words * 0, *encoder(tokens), *past), shapes, (inputs, results)),
    ):
        program = torch.export.export(
            module,
            example,
            dynamic_shapes=dynamic,
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )
        if kind == "torch":
            torch.export.save(program, folder / f"{name}.pt2")
        else:
            options: Dict[str, Any] = {"opset_version": OPSET, "dynamo": True, "verbose": False}
            options |= dict(zip(("input_names", "output_names"), names, strict=True))
            onnx: Any = torch.onnx.export(program, **options)
            onnx.save(str(folder / f"{name}.onnx"))
    dictionary = task.target_dictionary
    about: Dict[str, Any] = {
        "positions": model.signature,
        "start": dictionary.eos(),
        "end": dictionary.eos(),
        "pad": dictionary.pad(),
        "longest_source": lengths[0],
        "longest_target": lengths[1],
        "past": sizes,
    }
    task.source_dictionary.save(str(folder / "dict.source.txt"))
    dictionary.save(str(folder / "dict.target.txt"))
    write_text(folder / "config.json", json.dumps(about, indent=2) + "\n")
