"""All that the plugin replaces in fairseq when it is imported, and why.

Where fairseq has no hook, a function of it is replaced by one that calls it (all but
``broadcast``), so what it does in fairseq's next version still counts. One file for each reason:

``batches``
    ``FairseqTask.get_batch_iterator``: fairseq-fixed gave a run that continues other batches, and
    other masked words, than one that never stopped.
``beam_search``
    ``FairseqTask.build_generator``: our models are decoded several times as fast by a search that
    knows them, whatever command or program asks.
``bfloat16``
    ``dataclass.utils.override_module_args``: fairseq's command line takes ``--bf16`` to mean a TPU,
    and stops without the driver of one.
``broadcast``
    ``distributed.utils._broadcast_object_slow``: since torch 2.6 no training on several GPUs could
    be continued, because the processes refused each other's checkpoint.
``label_smoothing``
    ``compute_loss`` and ``forward`` of the criterion ``label_smoothed_cross_entropy``: for our
    models the loss, and with it its gradient, is computed without the logits of the whole batch.
``one_line_errors``
    ``sys.excepthook``: fairseq's commands show a mistake of the user as a traceback.
``safe_checkpoints``
    ``checkpoint_utils.load_checkpoint_to_cpu`` and torch's list of harmless types: fairseq's
    checkpoints can then be read without running code, and errors name the file.
``scalar_quantization``
    ``MAPPING`` of ``modules.quantization.scalar.utils`` and ``emulate_int8_histogram`` of its
    ``ops``: ``--quant-noise-scalar`` knew no subclass of a layer, and no machine without a GPU.
``whole_copies``
    ``PathManager.copy``: a run killed while fairseq copies ``checkpoint_last.pt`` had nothing to
    continue from.
"""

from . import (
    batches,
    beam_search,
    bfloat16,
    broadcast,
    label_smoothing,
    one_line_errors,
    safe_checkpoints,
    scalar_quantization,
    whole_copies,
)

# A new patch is a file with a function ``install`` that may be called again, an entry here, and
# a paragraph above.
PATCHES = (
    batches,
    beam_search,
    bfloat16,
    broadcast,
    label_smoothing,
    one_line_errors,
    safe_checkpoints,
    scalar_quantization,
    whole_copies,
)


def install() -> None:
    """Puts all patches in place; once, however often it is called."""
    for patch in PATCHES:
        patch.install()
