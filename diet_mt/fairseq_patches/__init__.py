"""All that the plugin replaces in fairseq when it is imported, and why.

Where fairseq has no hook, a function of it is replaced by one that calls it (all but
``broadcast``), so what it does in fairseq's next version still counts. One file for each reason,
put in place where it is imported here:

``archives``
    ``hub_utils.from_pretrained`` and ``file_utils.load_archive_file``: an archive could write
    anywhere, and was itself replaced by a folder.
``batches``
    ``data_utils.batch_by_size``: fairseq-fixed dropped the last sentences of every data set.
    ``FairseqTask.filter_indices_by_size``: how many sentences a score is over was not logged.
    ``FairseqTask.get_batch_iterator``: fairseq-fixed gave a run that continues other batches, and
    other masked words, than one that never stopped.
``beam_search``
    ``FairseqTask.build_generator``: our models are decoded several times as fast by a search that
    knows them, whatever command or program asks. ``NGramRepeatBlock._no_repeat_ngram``:
    ``--no-repeat-ngram-size`` blocked nothing in fairseq's search.
``bfloat16``
    ``dataclass.utils.override_module_args``: fairseq's command line takes ``--bf16`` to mean a TPU,
    and stops without the driver of one.
``broadcast``
    ``distributed.utils._broadcast_object_slow``: since torch 2.6 no training on several GPUs could
    be continued, because the processes refused each other's checkpoint.
``confined``
    ``encoders.build_bpe`` and ``build_tokenizer``; with ``safe_checkpoints``: a checkpoint could
    name any file or address to be opened.
``fused_adam``
    ``FairseqAdam.__init__``, ``FairseqOptimizer.multiply_grads``,
    ``utils.multi_tensor_total_norm``, and of ``FP16Optimizer`` ``step``, ``zero_grad``,
    ``_sync_fp16_grads_to_fp32`` and ``_sync_fp32_params_to_fp16``: on a GPU, an update took longer
    than a forward pass.
``label_smoothing``
    ``compute_loss`` and ``forward`` of the criterion ``label_smoothed_cross_entropy``: for our
    models the loss, and with it its gradient, is computed without the logits of the whole batch.
``literals``
    ``eval`` in the modules of fairseq that call it: options of a checkpoint ran as code.
``named_parts``
    ``checkpoint_utils._upgrade_state_dict``: a checkpoint may name only models, tasks and so on
    that are known to be harmless. ``FastaDataset._build_index``: a path was part of a shell
    command.
``newer_options``
    ``checkpoint_utils.load_checkpoint_to_cpu``: ``--model-overrides`` dropped options that are
    newer than the checkpoint.
``one_line_errors``
    ``sys.excepthook``: fairseq's commands show a mistake of the user as a traceback.
``safe_checkpoints``
    The name ``torch`` in ``checkpoint_utils``, and ``load_checkpoint_to_cpu`` there: fairseq's
    checkpoints can then be read without running code, and errors name the file.
``scalar_quantization``
    ``MAPPING`` of ``modules.quantization.scalar.utils`` and ``emulate_int8_histogram`` of its
    ``ops``: ``--quant-noise-scalar`` knew no subclass of a layer, and no machine without a GPU.
``unsaved_state``
    ``Trainer.save_checkpoint`` and ``checkpoint_utils.load_checkpoint``: a continued training lost
    the counts of ``--patience`` and ``--lr-patience``, and the validation loss of an epoch where it
    was killed after the save at its end.
``whole_copies``
    ``PathManager.copy``: a run killed while fairseq copies ``checkpoint_last.pt`` had nothing to
    continue from.
"""

# A new patch is a file, a line here, and a paragraph above.
from . import archives as archives
from . import batches as batches
from . import beam_search as beam_search
from . import bfloat16 as bfloat16
from . import broadcast as broadcast
from . import confined as confined
from . import fused_adam as fused_adam
from . import label_smoothing as label_smoothing
from . import literals as literals
from . import named_parts as named_parts
from . import newer_options as newer_options
from . import one_line_errors as one_line_errors
from . import safe_checkpoints as safe_checkpoints
from . import scalar_quantization as scalar_quantization
from . import unsaved_state as unsaved_state
from . import whole_copies as whole_copies
