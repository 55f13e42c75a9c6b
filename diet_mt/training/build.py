"""What all trainings have in common: a recipe and what is given beside it become one command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from ..errors import UserError
from ..files import PLUGIN
from ..recipes import Recipe
from . import devices
from .devices import Machines
from .options import Options, as_words, number, of_values, one, whole

# Options that a recipe or a command line may have beside those of fairseq-train.
OWN = ("tokens-per-update", "sequences-per-update", "max-tokens-per-device", "warmup", "precision")
# Options that say where to run, and are not kept with what was run.
_WHERE = ("stop-time-hours", "num-workers")
# Option that is set here -> what to do instead.
_REFUSED = {
    "arch": "it is the second argument",
    "user-dir": "the project's own is used",
    "log-format": "leave it out, the log is read",
    "required-batch-size-multiple": "leave it out, all trainings have the same batches",
    "cpu": "give --gpus 0",
    "tpu": "leave it out",
    **dict.fromkeys(("fp16", "bf16"), "give --precision"),
    **dict.fromkeys(
        ("distributed-world-size", "distributed-rank", "distributed-init-method"),
        "give --gpus, --nodes, --node-rank and --master",
    ),
}
_SHARES = ("dropout", "attention-dropout", "activation-dropout", "label-smoothing", "mask-prob")
_COUNTS = (
    *("max-update", "max-epoch", "max-tokens", "batch-size", "total-num-update", "patience"),
    *("tokens-per-update", "sequences-per-update", "max-tokens-per-device"),
)


@dataclass(frozen=True)
class TrainingRequest:
    """What the user asks for. ``given``: options beside the recipe, which they override."""

    recipe: Recipe
    save: Path
    seed: int = 1
    given: Options = field(default_factory=dict)
    machines: Machines = field(default_factory=lambda: Machines(precision=""))


@dataclass(frozen=True)
class Training:
    """One fairseq-train: ``options`` are what is trained, ``launch`` says where."""

    data: Path
    options: Options
    launch: list[str]
    save: Path
    node_rank: int = 0
    note: str = ""  # on devices and batches, for the user

    def words(self) -> list[str]:
        """What is kept beside the checkpoints; ``launch`` is not."""
        return ["fairseq-train", str(self.data), "--user-dir", str(PLUGIN), *as_words(self.options)]

    def command(self) -> str:
        """For a shell."""
        return shlex.join([*self.words(), *self.launch])


def merged(request: TrainingRequest, system: str, fixed: Options) -> Options:
    """The recipe's options, over them what is given, and over these ``fixed``.

    A training ends by updates or by epochs: where one of them is given, the recipe's other is not
    meant. Raises UserError where an option is not the user's to set, or has a value that makes no
    sense.
    """
    options = of_values(request.recipe.values_of(system))
    for end, other in (("max-update", "max-epoch"), ("max-epoch", "max-update")):
        if end in request.given and other not in request.given:
            options.pop(other, None)
    options |= request.given
    for name in options:
        if name in _REFUSED:
            raise UserError(f"--{name}: {_REFUSED[name]}")
    _check_numbers(options)
    options = {
        name: [value.replace("{save-dir}", str(request.save)) for value in values]
        for name, values in options.items()
    }
    # Trained rows are comparable only with the same batches, which depend on the multiple.
    own = {"seed": [str(request.seed)], "save-dir": [str(request.save)]}
    return fixed | options | {"required-batch-size-multiple": ["1"]} | own


def _check_numbers(options: Options) -> None:
    for name in _COUNTS:
        whole(options, name)
    for name in _SHARES:
        if name in options:
            number(options, name, 0, 1)
    for name in ("warmup-updates", "weight-decay"):
        if name in options:
            number(options, name, 0, float("inf"))
    # One for each epoch, if there are several.
    for rate in _each(options, "lr"):
        number({"lr": [rate]}, "lr", 0, float("inf"))
    for freq in _each(options, "update-freq"):
        whole({"update-freq": [freq]}, "update-freq")


def _each(options: Options, name: str) -> list[str]:
    values = one(options, name).strip("[]").split(",") if name in options else []
    return [value.strip() for value in values]


def warm_up(options: Options, updates: int) -> None:
    """Sets fairseq's options of a linear decay over so many updates; ``warmup`` is a share."""
    share = options.pop("warmup", None)
    if share is not None:
        number({"warmup": share}, "warmup", 0, 1)
        options.setdefault("warmup-updates", [str(int(updates * Decimal(share[0])))])
    if one(options, "lr-scheduler") == "polynomial_decay":
        options.setdefault("total-num-update", [str(updates)])


def placed(
    data: Path, options: Options, request: TrainingRequest, share: tuple[str, str, int] | None
) -> Training:
    """The training on the devices that are here.

    ``options`` are changed; ``share``: what an update is shared by: its unit ("tokens"), fairseq's
    option of how many make a batch ("max-tokens"), and how many fit on a device at a time; None: as
    the options say. Raises UserError where there are no such devices.
    """
    machines = request.machines
    precision = machines.precision or one(options, "precision", "auto")
    if precision not in ("auto", *devices.PRECISIONS):
        raise UserError(f"--precision {precision}: choose auto, {', '.join(devices.PRECISIONS)}")
    total = {unit: whole(options, f"{unit}-per-update") for unit in ("tokens", "sequences")}
    for name in OWN:
        options.pop(name, None)
    launch = as_words({name: options.pop(name) for name in _WHERE if name in options})
    note = ""
    if share is None and "max-tokens-per-device" in request.given:
        raise UserError("--max-tokens-per-device: the recipe shares no update; give --max-tokens")
    asked = replace(machines, precision=precision)
    if share is not None:
        unit, option, most = share
        for name in (option, "update-freq"):
            if name in request.given:
                raise UserError(f"--{name}: give --{unit}-per-update and --max-tokens-per-device")
        here = devices.look(asked)
        batches = devices.split_update(total[unit], most, here.processes)
        options |= {option: [str(batches.tokens)], "update-freq": [str(batches.per_update)]}
        several = here.processes > 1
        where = f"{here.processes} process{'es' * several} on the CPU"
        if here.gpus:
            where = f"{machines.nodes} x {here.gpus} GPUs"
        each = " on each of them" * several
        note = (
            f"{where}, {here.precision}, batches of {batches.tokens} {unit}, "
            f"{batches.per_update}{each} for an update: {batches.total} {unit}"
        )
    elif (machines.gpus, machines.nodes) != ("auto", 1) or precision == "auto":
        here = devices.look(asked)
    else:
        # All GPUs that fairseq finds.
        options |= _flags(precision)
        return Training(data, options, launch, request.save)
    options |= {"distributed-world-size": [str(here.processes)]} | _flags(here.precision)
    rank = machines.node_rank if machines.nodes > 1 else 0
    return Training(data, options, launch + here.launch, request.save, rank, note)


def _flags(precision: str) -> Options:
    return {} if precision == "fp32" else {precision: []}
