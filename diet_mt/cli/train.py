"""``diet-mt train``, ``pretrain`` and ``finetune``: a class each, whose docstring is the help."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Options of all trainings."""

    passes_on = True
    defaults: ClassVar = {"precision": ""}  # the recipe's
    recipe: str = option("config/NAME.yaml, or a file FILE.yaml", metavar="NAME")
    seed: Seed = option("random seed", 1)
    save_dir: Folder = option("folder of checkpoints", metavar="DIR")
    dry_run: bool = option("print the fairseq-train command, do nothing", False)
    machines: Machines
    max_tokens_per_device: Positive | None = option("at a time (default: the recipe's)", None)
    passed: Sequence[str] = ()
    known: Sequence[str] = ()

    def request(self) -> TrainingRequest:
        """The recipe, and what is given besides."""
        from ..experiments.fairseq_command import TrainingRequest, parse
        from ..experiments.recipes import load

        given = parse(self.passed)
        for name in _GIVEN:
            if value := getattr(self, name, None):
                given[name.replace("_", "-")] = [str(value)]
        return TrainingRequest(load(self.recipe), self.save_dir, self.seed, given, self.machines)

    def carry_out(self, training: Training) -> None:
        """Trains, or prints the command."""
        from ..corpora.binarized import need_whole
        from ..experiments.devices import need_gpus
        from ..experiments.fairseq_command import check
        from ..experiments.train import refuse_another, train

        def look() -> None:
            need_gpus(self.machines.gpus)
            check(training, self.known)
            need_whole(training.data, besides="test")

        if self.dry_run:
            refuse_another(training)
            check(training, self.known)
            print(training.command())
        else:
            train(training, look)


@dataclass(frozen=True, kw_only=True)
class Train(Trained):
    """Trains one translation model with fairseq-train, by a recipe.

        diet-mt train data/multi30k.en-de diet_rel_tiny --recipe multi30k --save-dir DIR
        ... --seed 2 --dropout 0.2 --max-epoch 20     any option of fairseq-train, over the recipe's
        ... --dry-run                                 prints the command, does nothing
        diet-mt train data/wmt18.de-en diet_rel_base --recipe table4 --save-dir checkpoints/en-de \\
            --source-lang en --target-lang de         on all GPUs of this machine

    DATA is a folder made by fairseq-preprocess, or the corpus folder with it; ARCH is
    ENCODING_SIZE. Checkpoints, command, log and, in the end, a file `done` go to the folder. Run
    again, it continues from the last checkpoint; finished, it does nothing; a folder begun with
    another command is refused. Where the recipe has tokens-per-update, an update is the same for
    any number of GPUs. On several machines run it once on each, with --nodes, --node-rank and
    --master, or under Slurm by srun. To disable what a recipe enables, write a recipe with
    `extends: NAME` and `OPTION: false`.
    """

    data: Path = argument("made by diet-mt prepare or fairseq-preprocess")
    arch: str = argument("architecture: diet_rel_tiny, sinusoidal_base, ...")
    tokens_per_update: Positive | None = option("on all devices (default: the recipe's)", None)

    def run(self) -> None:
        from ..experiments.fairseq_command import translation

        request = self.request()
        self.carry_out(translation(self.data, self.arch, request, planned=self.dry_run))


@dataclass(frozen=True, kw_only=True)
class Pretrain(Trained):
    """Pretrains an encoder as a masked language model, by a recipe.

        diet-mt pretrain data/mlm.en diet_rel --recipe mlm --save-dir checkpoints/mlm/diet_rel.1
        diet-mt pretrain data/mlm.xx diet_abs --recipe mlm-multilingual --save-dir ...
        diet-mt pretrain data/mlm.en learned --recipe mlm --size tiny --max-update 2000 \\
            --save-interval-updates 200 --validate-interval-updates 200 \\
            --sequences-per-update 64 --lr 0.001 --save-dir ...               a small one
        ... --dry-run                                     prints the command, does nothing

    Any option of fairseq-train may be given, over the recipe's. An update sees the same number of
    sequences for any number of GPUs. Run again, it continues; finished, it does nothing. Time:
    weeks on one recent GPU for the base size (an estimate). Disk: (3 + kept checkpoints) x 1.3 GB.
    """

    data: Path = argument("made by diet-mt prepare mlm")
    system: str = argument("encoding: learned, diet_rel, diet_abs, ...")
    size: str = option("tiny, small or base", "base")
    segment_encoding: str | None = _segments()
    sequences_per_update: Positive | None = option("on all devices (default: the recipe's)", None)

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
    """Fine-tunes a pretrained encoder once on a task of GLUE, on XNLI or on SQuAD, by a recipe.

        diet-mt finetune data/glue/CoLA checkpoints/mlm/diet_rel.1/checkpoint_best.pt \\
            --recipe glue --lr 2e-5 --max-epoch 10 --seed 1 --save-dir checkpoints/CoLA/diet_rel.1
        ... --segments input        place of the segment encoding (default: the recipe's)
        ... --dry-run               prints the command, does nothing

    DATA is made by diet-mt prepare glue, xnli or qa, CHECKPOINT by diet-mt pretrain. Keeps
    checkpoint_best.pt, by the task's main metric on its (first) dev set. Any option of
    fairseq-train may be given, over the recipe's. Run again, it continues; finished, it does
    nothing. A tiny model on CoLA takes some 20 seconds an epoch on one core.
    """

    left_out = ("nodes", "node_rank", "master", "max_tokens_per_device")
    data: Path = argument("made by diet-mt prepare glue, xnli or qa")
    checkpoint: Path = argument("pretrained checkpoint")
    segment_encoding: str | None = _segments()
    task: str = option("CoLA, XNLI, SQuAD, ... (default: the name of DATA)", "")
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
