"""Loss and beam search for our models, in place of fairseq's."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models.fairseq_decoder import FairseqDecoder
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.tasks import FairseqTask

from ..decoding.generator import own_generator
from ..layers.decoder import DietDecoder
from ..layers.run import is_method, is_product
from ..nn.cross_entropy import from_features, serves
from ..nn.precision import autocasts


def label_smoothed(
    original: Callable[..., Any], criterion: Any, model: Any, sample: Any, reduce: bool = True
) -> Any:
    """Loss, sample size and logged values of ``label_smoothed_cross_entropy``.

    fairseq writes eight tensors of (B, T, V) in a training step. ``nn/cross_entropy.py`` needs none
    if logits are a product of our decoder's features and a weight, and nothing else reads them.
    """
    if not (_smoothes_alone(criterion, model, reduce) and _output_is_a_product(model)):
        return original(criterion, model, sample, reduce=reduce)
    output = model(**sample["net_input"], features_only=True)
    target = model.get_targets(sample, output)
    weight = model.decoder.output_projection.weight
    features = output[0].flatten(0, 1)  # (B * T, E)
    loss, nll = from_features(
        *(features, weight, target.view(-1), criterion.eps, criterion.padding_idx),
        compile_blocks=model.cfg.compile,
    )
    size = target.size(0) if criterion.sentence_avg else sample["ntokens"]
    logged = {
        "loss": loss.data,
        "nll_loss": nll.data,
        "ntokens": sample["ntokens"],
        "nsentences": target.size(0),
        "sample_size": size,
    }
    return loss, size, logged


def _smoothes_alone(criterion: Any, model: Any, reduce: bool) -> bool:
    """Whether a training step needs only the summed loss over plain logits of our model."""
    # Imported here, since the models import the plugin, and with it this file.
    from ..models.diet_transformer import DietTransformerModel

    return (
        type(criterion) is LabelSmoothedCrossEntropyCriterion
        and isinstance(model, DietTransformerModel)
        and model.training
        and reduce
        and criterion.ignore_prefix_size == 0
        and not criterion.report_accuracy
        and model.decoder.adaptive_softmax is None
        and is_method(model.decoder.get_normalized_probs, FairseqDecoder.get_normalized_probs)
    )


def _output_is_a_product(model: Any) -> bool:
    """Whether logits are features times a weight of a supported device and precision."""
    decoder = model.decoder
    last = decoder.output_projection
    return (
        is_product(last)
        and last.bias is None
        and not (last._backward_hooks or last._backward_pre_hooks)
        and is_method(decoder.output_layer, TransformerDecoderBase.output_layer)
        and serves(last.weight)
        and not autocasts(last.weight.device)
    )


def build_generator(
    original: Callable[..., Any],
    task: FairseqTask,
    models: Any,
    args: Any,
    seq_gen_cls: Optional[type] = None,
    extra_gen_cls_kwargs: Optional[Dict[str, Any]] = None,
    **more: Any,
) -> Any:
    """The generator selected by ``decoding/generator.py``, unless a class is given."""
    extra = dict(extra_gen_cls_kwargs or {})
    if seq_gen_cls is None:
        seq_gen_cls = own_generator(models, args, "fairseq", {**extra, **more})
    for model in models:  # as in prepare_for_inference_, which may not be called
        if isinstance(getattr(model, "decoder", None), DietDecoder):
            model.decoder.need_attn = bool(getattr(args, "print_alignment", None))
    return original(task, models, args, seq_gen_cls=seq_gen_cls, extra_gen_cls_kwargs=extra, **more)
