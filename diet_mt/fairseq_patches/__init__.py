"""Patches of fairseq functions that have no hook.

Each replacement gets the original as its first argument. All but ``broadcast_object`` call it, some
only in certain cases; there, changes of later versions of fairseq take effect.
"""

import functools
import importlib
import os
import pkgutil
from typing import Any, Callable, Mapping

from fairseq import checkpoint_utils, utils
from fairseq.modules.quantization.scalar import utils as quantization

from ..layers.stack import PaddedEmbedding, QuantizedPaddedEmbedding
from . import error_lines, fast_paths, fused_adam, repairs, safe_load, trust

PATCHES: Mapping[str, Callable[..., Any]] = {
    # An archive could write anywhere, and was replaced by its unpacked folder.
    "fairseq.hub_utils.from_pretrained": trust.from_pretrained,
    "fairseq.file_utils.load_archive_file": trust.load_archive_file,
    # A checkpoint could name any model, task or other part, including those that run code.
    "fairseq.checkpoint_utils._upgrade_state_dict": trust.upgrade_state_dict,
    # A path was part of a shell command.
    "fairseq.data.fasta_dataset.FastaDataset._build_index": trust.build_index,
    # A checkpoint could name any file or address to open, and a model that takes hours to build;
    # --model-overrides ignored options that are newer than the checkpoint.
    "fairseq.checkpoint_utils.load_checkpoint_to_cpu": repairs.load_checkpoint_to_cpu,
    # fairseq-fixed dropped the last sentences of every data set (fairseq #5036, #5094, #5351).
    "fairseq.data.data_utils.batch_by_size": repairs.batch_by_size,
    # The number of sentences in a score was not logged.
    "fairseq.tasks.FairseqTask.filter_indices_by_size": repairs.filter_indices_by_size,
    # fairseq-fixed seeds batches with the epoch in which a process starts, and keeps workers with
    # the dataset of that epoch: a resumed run had other batches, and other masked words.
    "fairseq.tasks.FairseqTask.get_batch_iterator": repairs.get_batch_iterator,
    # --no-repeat-ngram-size compared with padding and blocked nothing (fairseq #5206).
    "fairseq.ngram_repeat_block.NGramRepeatBlock._no_repeat_ngram": repairs.no_repeat_ngram,
    # On the command line, --bf16 selected a TPU and failed without its driver.
    "fairseq.dataclass.utils.override_module_args": repairs.override_module_args,
    # Training on several GPUs could not be resumed: since torch 2.6, the other processes refuse the
    # checkpoint that the first one has read.
    "fairseq.distributed.utils._broadcast_object_slow": repairs.broadcast_object,
    # On several GPUs, weights lost their options, so those of other positions were refused.
    "fairseq.distributed.utils.broadcast_object": repairs.broadcast_state,
    # --quant-noise-scalar needed a GPU.
    "fairseq.modules.quantization.scalar.ops.emulate_int8_histogram": (
        repairs.emulate_int8_histogram
    ),
    # A run that was killed while it copied checkpoint_last.pt could not be resumed.
    "fairseq.file_io.PathManager.copy": repairs.copy,
    # A resumed training lost the counts of --patience and --lr-patience; and the validation loss of
    # an epoch, if it was killed after the save at its end.
    "fairseq.trainer.Trainer.save_checkpoint": repairs.save_checkpoint,
    "fairseq.checkpoint_utils.load_checkpoint": repairs.load_checkpoint,
    # A model could not tell training from decoding, which must not change positions.
    "fairseq.trainer.Trainer.load_checkpoint": repairs.load_weights,
    # Decoding of our models is several times as fast, in every command and program.
    "fairseq.tasks.FairseqTask.build_generator": fast_paths.build_generator,
    # The loss of our models needs no logits of the whole batch.
    "fairseq.criterions.label_smoothed_cross_entropy.LabelSmoothedCrossEntropyCriterion.forward": (
        fast_paths.label_smoothed
    ),
    # On a GPU, an update took longer than a forward pass.
    "fairseq.optim.adam.FairseqAdam.__init__": fused_adam.build_adam,
    "fairseq.optim.FairseqOptimizer.multiply_grads": fused_adam.multiply_grads,
    **{
        f"fairseq.optim.fp16_optimizer._FP16OptimizerMixin.{name}": function
        for name, function in {
            "_sync_fp16_grads_to_fp32": fused_adam.sync_gradients,
            "_sync_fp32_params_to_fp16": fused_adam.sync_parameters,
            "step": fused_adam.step,
            "zero_grad": fused_adam.zero_grad,
        }.items()
    },
    # Errors in the user's input printed a traceback.
    "sys.excepthook": error_lines.excepthook,
}


def _in_place_of(original: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(original, *args, **kwargs)

    return wrapped


for _path, _function in PATCHES.items():
    _owner, _, _name = _path.rpartition(".")
    _of = pkgutil.resolve_name(_owner)
    setattr(_of, _name, _in_place_of(getattr(_of, _name), _function))

# Checkpoints are read without running code.
vars(checkpoint_utils)["torch"] = safe_load.Torch()
# Options of a checkpoint were evaluated as code.
for _name in trust.EVALUATING:
    vars(importlib.import_module(f"fairseq.{_name}"))["eval"] = trust.literal
# --quant-noise-scalar supported no subclasses of layers.
quantization.MAPPING = repairs.QuantizedForms(
    {**quantization.MAPPING, PaddedEmbedding: QuantizedPaddedEmbedding}
)
# Without apex fairseq computes the norm of each gradient separately.
if not utils.multi_tensor_l2norm_available:
    utils.multi_tensor_l2norm_available = True
    utils.multi_tensor_total_norm = fused_adam.total_norm
# hydra prints errors itself, with a traceback, unless it is set to raise them.
os.environ.setdefault("HYDRA_FULL_ERROR", "1")
