"""``--criterion label_smoothed_cross_entropy`` without log-probabilities of the whole batch.

fairseq's criterion asks the model for logits of (B, T, V) and writes seven more tensors of that
size in a training step. There is no hook between its forward pass and the model, so two of its
methods are replaced. For our models in training they take
``from_features`` of ``nn/cross_entropy.py`` where the output layer is one plain product, and on a
CPU ``from_logits`` where it is not or where the model is wrapped (data parallel). In validation,
for other models and with any option that reads the log-probabilities, fairseq's own code runs.
Loss, sample size and logged values are the same.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Tuple

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models.fairseq_decoder import FairseqDecoder
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from ..layers.run import is_method
from ..nn.cross_entropy import from_features, from_logits, serves
from ..nn.linear import Linear
from ..nn.precision import autocasts


def without_logits(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The criterion's ``forward``, from the decoder's features where nothing else needs logits."""

    @functools.wraps(forward)
    def wrapped(self: Any, model: Any, sample: Any, reduce: bool = True) -> Any:
        if not (_smoothes_alone(self, model, reduce) and _output_is_a_product(model)):
            return forward(self, model, sample, reduce=reduce)
        output = model(**sample["net_input"], features_only=True)
        target = model.get_targets(sample, output)
        weight = model.decoder.output_projection.weight
        features = output[0].flatten(0, 1)  # (B * T, E)
        loss, nll = from_features(
            *(features, weight, target.view(-1), self.eps, self.padding_idx),
            compile_blocks=model.cfg.compile,
        )
        size = target.size(0) if self.sentence_avg else sample["ntokens"]
        logged = {
            "loss": loss.data,
            "nll_loss": nll.data,
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": size,
        }
        return loss, size, logged

    return wrapped


def in_blocks(compute_loss: Callable[..., Any]) -> Callable[..., Any]:
    """The criterion's ``compute_loss``, from logits without log-probabilities."""

    @functools.wraps(compute_loss)
    def wrapped(
        self: Any, model: nn.Module, output: Any, sample: Any, reduce: bool = True
    ) -> Tuple[Tensor, Tensor]:
        inner = _unwrapped(model)
        if not (_smoothes_alone(self, inner, reduce) and output[0].device.type == "cpu"):
            found: Tuple[Tensor, Tensor] = compute_loss(self, model, output, sample, reduce=reduce)
            return found
        target = inner.get_targets(sample, output)  # type: ignore[operator]
        logits = output[0].flatten(0, -2)  # (B * T, V)
        return from_logits(logits, target.reshape(-1), self.eps, self.padding_idx)

    return wrapped


def _unwrapped(model: nn.Module) -> nn.Module:
    """What is inside the wrappers of data parallel training."""
    while isinstance(getattr(model, "module", None), nn.Module):
        model = model.module  # type: ignore[assignment]
    return model


def _is_ours(model: nn.Module) -> bool:
    # Here, since the models bring the plugin, and with it this file.
    from ..models.diet_transformer import DietTransformerModel

    return isinstance(model, DietTransformerModel)


def _smoothes_alone(criterion: Any, model: Any, reduce: bool) -> bool:
    """Whether sums of the smoothed loss over plain logits of our model are all that is wanted."""
    return (
        type(criterion) is LabelSmoothedCrossEntropyCriterion
        and _is_ours(model)
        and model.training
        and reduce
        and criterion.ignore_prefix_size == 0
        and not criterion.report_accuracy
        and model.decoder.adaptive_softmax is None
        and is_method(model.decoder.get_normalized_probs, FairseqDecoder.get_normalized_probs)
    )


def _output_is_a_product(model: nn.Module) -> bool:
    """Whether logits are features times a weight, and only that."""
    decoder: Any = model.decoder
    last = decoder.output_projection
    return (
        type(last) in (nn.Linear, Linear)
        and last.bias is None
        and not (last._forward_hooks or last._forward_pre_hooks)
        and not (last._backward_hooks or last._backward_pre_hooks)
        and is_method(decoder.output_layer, TransformerDecoderBase.output_layer)
        and serves(last.weight)
        and not autocasts(last.weight.device)
    )


LabelSmoothedCrossEntropyCriterion.forward = without_logits(
    LabelSmoothedCrossEntropyCriterion.forward
)
LabelSmoothedCrossEntropyCriterion.compute_loss = in_blocks(
    LabelSmoothedCrossEntropyCriterion.compute_loss
)
