"""The commands ``train``, ``pretrain`` and ``finetune``; docstrings are their help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..experiments.devices import Machines
from ..system.errors import UserError
from ..system.options import Command, Folder, Positive, Seed, argument, need_known, option

if TYPE_CHECKING:
    from ..experiments.fairseq_command import Training, TrainingRequest

SEGMENTS = ("none", "input", "per-head")
# Fields that are options of fairseq-train or of a recipe.
_GIVEN = ("tokens_per_update", "sequences_per_update", "max_tokens_per_device", "segment_encoding")


def _segments() -> Any:
    what = "place of the segment encoding (default: the recipe's)"
    return option(what, None, flag="--segments", choices=SEGMENTS)


@dataclass(frozen=True, kw_only=True)
class Trained(Command):
    """Options common to all training commands."""

    passes_on = True
    defaults: ClassVar[dict[str, Any]] = {"precision": ""}  # the recipe's
    recipe: str = option("recipe: NAME for config/NAME.yaml, or a .yaml file", metavar="NAME")
    seed: Seed = option("random seed", 1)
    save_dir: Folder = option("folder for checkpoints", metavar="DIR")
    dry_run: bool = option("only print the fairseq-train command", False)
    machines: Machines
    max_tokens_per_device: Positive | None = option(
        "maximum tokens of a batch on one device (default: the recipe's)", None
    )

    def request(self) -> TrainingRequest:
        """The recipe and the options given on the command line."""
        from ..experiments.fairseq_command import TrainingRequest, parse
        from ..experiments.recipes import load

        given = parse(self.passed)
        for name in _GIVEN:
            if value := getattr(self, name, None):
                given[name.replace("_", "-")] = [str(value)]
        return TrainingRequest(
            *(load(self.recipe), self.save_dir, self.seed, given, self.machines, self.dry_run)
        )

    def carry_out(self, training: Training) -> None:
        """Runs the training, or prints its command (``--dry-run``)."""
        from ..corpora.binarized import need_whole
        from ..experiments.fairseq_command import check
        from ..experiments.train import refuse_another, train

        def check_all() -> None:
            check(training, self.known)
            need_whole(training.data, except_prefix="test")

        if self.dry_run:
            refuse_another(training)
            check(training, self.known)
            print(training.command())
            if training.pending:
                print(f"# pending: {training.pending}")
        else:
            train(training, check_all)


@dataclass(frozen=True, kw_only=True)
class Train(Trained):
    """Trains a translation model with fairseq-train, by a recipe.

        diet-mt train data/multi30k.en-de diet_rel_tiny --recipe multi30k --save-dir DIR
        ... --seed 2 --dropout 0.2 --max-epoch 20     overrides options of the recipe
        ... --dry-run                                 only prints the command
        diet-mt train data/wmt18.de-en diet_rel_base --recipe table4 --save-dir checkpoints/en-de \\
            --source-lang en --target-lang de         on all GPUs of this machine

    DATA is a folder made by fairseq-preprocess, or the corpus folder that contains it. ARCH is
    ENCODING_SIZE. All options of fairseq-train are accepted and override the recipe. The save-dir
    contains the checkpoints, the command, the log and, at the end, a file `done`. Running the
    command again resumes from the last checkpoint, and does nothing if the training has finished. A
    save-dir of another training is an error. If the recipe sets tokens-per-update, an update has
    the same size for any number of GPUs. On several machines, run the command once on each with
    --nodes, --node-rank and --master, or use srun under Slurm. To disable an option of a recipe,
    write a recipe with `extends: NAME` and `OPTION: false`.
    """

    data: Path = argument("folder made by diet-mt prepare or fairseq-preprocess")
    arch: str = argument("architecture: diet_rel_tiny, sinusoidal_base, ...")
    tokens_per_update: Positive | None = option(
        "tokens of an update, over all devices (default: the recipe's)", None
    )

    def run(self) -> None:
        from ..experiments.fairseq_command import translation

        self.carry_out(translation(self.data, self.arch, self.request()))


@dataclass(frozen=True, kw_only=True)
class Pretrain(Trained):
    """Pretrains an encoder as a masked language model, by a recipe.

        diet-mt pretrain data/mlm.en diet_rel --recipe mlm --save-dir checkpoints/mlm/diet_rel.1
        diet-mt pretrain data/mlm.xx diet_abs --recipe mlm-multilingual --save-dir ...
        diet-mt pretrain data/mlm.en learned --recipe mlm --size tiny --max-update 2000 \\
            --save-interval-updates 200 --validate-interval-updates 200 \\
            --sequences-per-update 64 --lr 0.001 --save-dir ...             a tiny model
        ... --dry-run                                     only prints the command

    All options of fairseq-train are accepted and override the recipe. An update has the same number
    of sequences for any number of GPUs. Running the command again resumes the training. The base
    size takes an estimated few weeks on one recent GPU and (3 + retained checkpoints) x 1.3 GB of
    disk.
    """

    data: Path = argument("folder made by diet-mt prepare mlm")
    system: str = argument("encoding: learned, diet_rel, diet_abs, ...")
    size: str = option("model size: tiny, small or base", "base")
    segment_encoding: str | None = _segments()
    sequences_per_update: Positive | None = option(
        "sequences of an update, over all devices (default: the recipe's)", None
    )

    def run(self) -> None:
        from ..evaluation.fairseq_options import import_fairseq

        request = self.request()
        import_fairseq()
        from ..experiments.fairseq_command import masked_lm
        from ..models.architectures import ROBERTA_SIZES
        from ..positions import COMMAND_NAMES

        need_known("encoding", [self.system.replace("-", "_")], COMMAND_NAMES)
        need_known("size", [self.size], ROBERTA_SIZES)
        self.carry_out(masked_lm(self.data, self.system, self.size, request))


@dataclass(frozen=True, kw_only=True)
class Finetune(Trained):
    """Fine-tunes a pretrained encoder on a GLUE task, XNLI or SQuAD, by a recipe.

        diet-mt finetune data/glue/CoLA checkpoints/mlm/diet_rel.1/checkpoint_best.pt \\
            --recipe glue --lr 2e-5 --max-epoch 10 --seed 1 --save-dir checkpoints/CoLA/diet_rel.1
        ... --segments input        place of the segment encoding (default: the recipe's)
        ... --dry-run               only prints the command

    DATA is made by diet-mt prepare glue, xnli or qa, and CHECKPOINT by diet-mt pretrain. Saves
    checkpoint_best.pt, selected by the task's main metric on its first dev set. All options of
    fairseq-train are accepted and override the recipe. Running the command again resumes the
    training. An epoch of a tiny model on CoLA takes about 20 seconds on one core.
    """

    left_out = ("nodes", "node_rank", "master", "max_tokens_per_device")
    data: Path = argument("folder made by diet-mt prepare glue, xnli or qa")
    checkpoint: Path = argument("pretrained checkpoint")
    segment_encoding: str | None = _segments()
    task: str = option("task: CoLA, XNLI, SQuAD, ... (default: the name of DATA)", "")
    system: str = option("required encoding of the checkpoint (default: any)", "")

    def run(self) -> None:
        from ..evaluation.fairseq_options import import_fairseq

        gpus = self.machines.gpus
        if gpus not in ("auto", "0", "1"):
            raise UserError(f"--gpus {gpus}: fine-tuning uses one device; give 0 or 1")
        request = self.request()
        import_fairseq()
        from ..experiments.fairseq_command import fine_tuning

        self.carry_out(
            fine_tuning(self.data, self.checkpoint, request, task=self.task, system=self.system)
        )
