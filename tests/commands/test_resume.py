"""A training that stops, or is killed, or runs in two processes ends as one that does not."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from diet_mt.cli.main import main

from .encoders import Encoders
from .runner import PLUGIN, ROOT, Done, command
from .workshop import (
    MAX_SOURCE,
    MAX_TARGET,
    MODEL,
    ONE_CHECKPOINT,
    RECIPE,
    SPY,
    Workshop,
    architecture,
    ended_state,
    epoch_losses,
    load,
    losses,
    positional_scores,
    same,
    state,
    valid_losses,
)

EPOCH = 7  # updates in an epoch of the toy corpus
BLEU = (
    "--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_a": 0, "max_len_b": 15}',
    "--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric",
)  # fmt: skip


def train(workshop: Workshop, encoding: str, folder: Path, *more: Any, **options: Any) -> Done:
    """As by default, with a process that reads ahead of the updates."""
    return workshop.train(encoding, folder, "--num-workers", 1, *more, **options)


def assert_same_ending(whole: tuple[Path, str], parts: tuple[Path, str], *, updates: int) -> None:
    """Two trainings, folder and output, agree in the last updates and in what is saved then."""
    expected, actual = losses(whole[1]), losses(parts[1])
    assert sorted(actual) == sorted(expected)[-updates:]
    assert actual == {update: expected[update] for update in actual}
    for printed in (epoch_losses, valid_losses):
        all_of_it, part = printed(whole[1]), printed(parts[1])
        assert part
        assert part == {key: all_of_it[key] for key in part}
    assert same(*(ended_state(folder) for folder, _ in (whole, parts)))


EPOCHS = (("--max-epoch", 1), ("--max-epoch", 2))
MIDDLE = (("--max-update", 10), ("--max-update", 14))
# Encoding, stop and end, options, and updates after the stop.
STOPPED: dict[str, tuple[str, Any, tuple[Any, ...], int]] = {
    # Validation with BLEU puts arrays of numpy into the checkpoint.
    "at the end of an epoch": ("diet-rel", EPOCHS, ("--position-randomized", 200, *BLEU), EPOCH),
    # It draws positions at random, too.
    "in the middle": ("cape", MIDDLE, ("--save-interval-updates", 4), 4),
}


@pytest.mark.parametrize("case", STOPPED)
def test_resumed(workshop: Workshop, tmp_path: Path, case: str) -> None:
    encoding, (stop, end), options, after = STOPPED[case]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    at_once = train(workshop, encoding, whole, *options, *end).ok()
    train(workshop, encoding, parts, *options, *stop).ok()
    if "--eval-bleu" in options:
        assert b"numpy" in (parts / "checkpoint1.pt").read_bytes()  # or it shows nothing
    saved = state(parts)["optimizer_history"][-1]["num_updates"]
    assert max(losses(at_once.stdout)) - int(saved) == after
    rest = train(workshop, encoding, parts, *options, *end).ok()
    assert_same_ending((whole, at_once.stdout), (parts, rest.stdout), updates=after)


@pytest.mark.parametrize(
    ("moment", "complete", "left"),
    [
        ("update:10", EPOCH, ["checkpoint1.pt"]),
        # Each epoch saves checkpointN.pt, then copies it to checkpoint_best.pt and _last.pt.
        ("save:2", EPOCH, ["checkpoint1.pt", "checkpoint2.pt.tmp"]),
        ("copy:4", EPOCH, ["checkpoint1.pt", "checkpoint2.pt", "checkpoint_last.pt.part"]),
        ("copy:2", 0, ["checkpoint1.pt", "checkpoint_best.pt", "checkpoint_last.pt.part"]),
    ],
)
def test_killed(
    workshop: Workshop, tmp_path: Path, moment: str, complete: int, left: list[str]
) -> None:
    """SIGKILL leaves no time to tidy up; the run goes on from the last complete checkpoint."""
    env = {"DIET_SPY_KILL": moment}
    killed = train(workshop, "diet-rel", tmp_path, "--max-epoch", 2, *SPY, env=env)
    assert killed.status == -signal.SIGKILL, killed.tail()
    names = {path.name for path in tmp_path.iterdir()}
    assert set(left) <= names
    assert ("checkpoint_last.pt" in names) is (complete > 0)
    for name in names:
        if name.endswith(".pt"):  # complete, whichever
            assert state(tmp_path, name)["optimizer_history"][-1]["num_updates"] >= EPOCH
    rest = train(workshop, "diet-rel", tmp_path, "--max-epoch", 2).ok()
    if complete:
        assert f"(epoch 2 @ {complete} updates)" in rest.stdout
    whole = workshop.two_epochs("diet-rel")
    assert_same_ending(whole, (tmp_path, rest.stdout), updates=2 * EPOCH - complete)


PLATEAU = ("--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 1, "--warmup-updates", 0)


@pytest.mark.parametrize(("schedule", "killed_at"), [((), 2 * EPOCH + 4), (PLATEAU, 2 * EPOCH + 1)])
def test_schedule_and_patience_after_a_kill(
    workshop: Workshop, tmp_path: Path, schedule: Any, killed_at: int
) -> None:
    """Continued from the end of epoch 2, and from update 16: the same schedule, the same end."""
    # Without any improvement after update 4: epoch 3 lowers the rate, update 24 is the last.
    options = ("--lr", 1e-12, "--patience", 8, "--save-interval-updates", 4, *schedule)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(workshop, "diet-rel", whole, *options).ok()
    env = {"DIET_SPY_KILL": f"update:{killed_at}"}
    killed = train(workshop, "diet-rel", parts, *options, *SPY, env=env)
    assert killed.status == -signal.SIGKILL, killed.tail()
    train(workshop, "diet-rel", parts, *options).ok()
    expected, actual = ended_state(whole), ended_state(parts)
    assert expected["optimizer_history"]["num_updates"] == 24
    assert expected["extra_state"]["patience"]["num_runs"] == 8
    if schedule:
        assert expected["last_optimizer_state"]["param_groups"][0]["lr"] == pytest.approx(1e-13)
        assert expected["extra_state"]["lr_patience"] == {"num_bad_epochs": 0, "last_epoch": 4}
    assert same(expected, actual), (expected["optimizer_history"], actual["optimizer_history"])


@pytest.mark.parametrize(
    ("kind", "encoding", "options"),
    [
        ("pretrain", "linformer", ("--segment-encoding", "input")),
        # Starts from the pretrained checkpoint once, and then from its own with all segments.
        ("finetune", "diet-rel", ("--segment-encoding", "per-head", "--finetune-from-model")),
    ],
)
def test_encoders_resumed(
    encoders: Encoders, tmp_path: Path, kind: str, encoding: str, options: tuple[Any, ...]
) -> None:
    options = (*options, *([encoders.checkpoint(encoding)] if kind == "finetune" else []))

    def run(name: str, epochs: int) -> Done:
        where = (encoding, tmp_path / name, *options, "--num-workers", 1)
        return getattr(encoders, kind)(*where, "--max-epoch", epochs).ok()

    whole, _, rest = run("whole", 2), run("parts", 1), run("parts", 2)
    updates = max(losses(whole.stdout)) // 2
    ends = (tmp_path / "whole", whole.stdout), (tmp_path / "parts", rest.stdout)
    assert_same_ending(*ends, updates=updates)
    assert "has no segments" not in rest.stdout + rest.stderr


# Of two processes on the CPU (gloo). Dropout off: each process draws its own. An odd number of
# batches leaves the second one idle last.
COMMON = ("--cpu", "--dropout", 0, "--max-epoch", 2, "--num-workers", 1)
TWO = (
    "--ddp-backend", "legacy_ddp", "--distributed-backend", "gloo", "--distributed-no-spawn",
    "--distributed-world-size", 2,
)  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def two_processes(workshop: Workshop, save_dir: Path, *options: Any) -> list[Done]:
    where = ("--distributed-init-method", f"tcp://127.0.0.1:{free_port()}", "--save-dir", save_dir)
    words = (*workshop.training(), *COMMON, *TWO, *options, *where)
    commands = [
        command("train", workshop.bin, *words, "--distributed-rank", rank) for rank in (0, 1)
    ]
    return [done.ok() for done in workshop.run.together(*commands)]


# Every layer has its own tables, or one set serves all layers.
@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs"])
def test_two_processes_have_the_losses_of_one_and_continue(
    workshop: Workshop, tmp_path: Path, encoding: str
) -> None:
    one, two, parts = (tmp_path / name for name in ("one", "two", "parts"))
    single = workshop.train(encoding, one, *COMMON, "--update-freq", 2).ok()
    arch = ("--arch", architecture(encoding))
    first, second = two_processes(workshop, two, *arch)
    for read in (losses, valid_losses):
        expected, actual = read(single.stdout), read(first.stdout)
        assert expected.keys() == actual.keys()
        for update, loss in expected.items():
            assert float(actual[update]) == pytest.approx(float(loss), abs=0.0011)  # three decimals
    assert sorted(losses(first.stdout)) == list(range(1, 9))  # or nothing was trained
    models = [state(folder)["model"] for folder in (one, two)]
    assert models[0].keys() == models[1].keys()
    for name, value in models[0].items():
        if not name.endswith("k_proj.bias"):
            # That one's gradient is rounding alone, which Adam makes as large as any other.
            assert torch.allclose(value.float(), models[1][name].float(), atol=2e-4), name
    assert losses(second.stdout) == {}  # only the first process reports
    if encoding == "diet-rel":
        two_processes(workshop, parts, *arch, "--max-epoch", 1)
        rest, _ = two_processes(workshop, parts, *arch)
        assert sorted(losses(rest.stdout)) == [5, 6, 7, 8]  # of the second epoch alone
        assert same(state(parts)["model"], models[1])


def test_hydra_train_trains_as_train_does(workshop: Workshop, tmp_path: Path) -> None:
    """With the configuration of the project, from any working folder."""
    saved = tmp_path / "hydra"
    where = ("--config-dir", ROOT / "config" / "hydra", "--config-name", "diet_rel_tiny")
    given = [f"common.user_dir={PLUGIN}", f"task.data={workshop.bin}"]
    given += [f"checkpoint.save_dir={saved}"]
    sides = [
        f"model.{side}_{name}"
        for side in ("encoder", "decoder")
        for name in ("layers=2", "embed_dim=32", "ffn_embed_dim=48", "attention_heads=2")
    ]
    positions = [
        f"+{part}.max_{name}_positions={count}"
        for part in ("model", "task")
        for name, count in (("source", MAX_SOURCE), ("target", MAX_TARGET))
    ]
    overrides = [
        "model.dropout=0.1", "criterion._name=cross_entropy", "~criterion.label_smoothing",
        "optimizer.adam_betas='(0.9, 0.999)'", "optimization.lr=[0.01]",
        "lr_scheduler.warmup_updates=40", "dataset.max_tokens=400", "optimization.max_epoch=2",
        "common.log_format=json", "common.log_interval=1",
    ]  # fmt: skip
    words = (where, given, sides, positions, overrides)
    by_hydra = workshop.run("hydra-train", *words, cwd=tmp_path).ok()
    folder, by_train = workshop.two_epochs("diet-rel")
    assert losses(by_hydra.stdout) == losses(by_train)
    assert valid_losses(by_hydra.stdout) == valid_losses(by_train)
    assert same(state(saved)["model"], state(folder)["model"])
    load(saved / "checkpoint_last.pt")  # its configuration is another class


def test_from_a_checkpoint_of_fairseq(
    workshop: Workshop, tmp_path: Path, forked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq's own model, trained without the plugin, has the same loss as ours that goes on with
    its weights, also in two processes. Then new positions, by diet-mt train.
    """
    stock, words = tmp_path / "stock", ("--max-update", 14, *ONE_CHECKPOINT)
    given = (*MODEL, *RECIPE, "--arch", "transformer", "--save-dir", stock, *words)
    expected = valid_losses(workshop.run("train", workshop.bin, *given).ok().stdout)[14]
    weights = ("--finetune-from-model", stock / "checkpoint_last.pt")
    still = ("--lr", 1e-12, "--max-update", 1, *ONE_CHECKPOINT)
    same_loss = workshop.train("sinusoidal", tmp_path / "same", *weights, *still).ok()
    assert valid_losses(same_loss.stdout)[1] == expected
    saved = state(tmp_path / "same")["model"]
    assert saved["encoder.embed_positions.first"] == 2
    options = ("--arch", architecture("sinusoidal"), *weights, *still)
    first, _ = two_processes(workshop, tmp_path / "two", *options)
    assert float(valid_losses(first.stdout)[1]) == pytest.approx(float(expected), abs=0.0011)

    recipe, new = tmp_path / "recipe.yaml", tmp_path / "new"
    recipe.write_text("training: {optimizer: adam, max-tokens: 400}\n", encoding="utf-8")
    (tmp_path / "bin").symlink_to(workshop.bin)
    monkeypatch.chdir(tmp_path)
    options = (*MODEL, *weights, "--reset-positions", "--lr", 1e-12, "--max-update", 1)
    into = ("--recipe", recipe, "--save-dir", new, "--gpus", 0)
    assert main([*map(str, ("train", "bin", "diet_rel_tiny", *into, *options))]) == 0
    assert ": 'sinusoidal" in (new / "train.log").read_text("utf-8")
    theirs, ours = state(stock)["model"], state(new)["model"]
    assert all(
        torch.allclose(value, ours[name], atol=1e-6)
        for name, value in theirs.items()
        if name in ours
    )
    assert [name for name in ours if "_attn_positions" in name]


def test_other_lengths_with_a_new_optimizer(workshop: Workshop, tmp_path: Path) -> None:
    """Tables are cut for sources and extended for targets; the probabilities of sentences within
    both lengths stay the same.
    """
    before = workshop.checkpoint("diet-rel")
    reset = [f"--reset-{part}" for part in ("optimizer", "lr-scheduler", "dataloader", "meters")]
    lengths = ("--max-source-positions", 20, "--max-target-positions", 50)
    still = ("--lr", 1e-12, "--max-update", 1, *ONE_CHECKPOINT)
    train(workshop, "diet-rel", tmp_path, "--restore-file", before, *reset, *lengths, *still).ok()
    after = tmp_path / "checkpoint_last.pt"
    assert state(tmp_path)["model"]["encoder.self_attn_positions.layers.0.by_offset"].size(-1) == 39
    pairs = list(zip(*(workshop.lines(f"test.{side}")[:5] for side in ("src", "tgt")), strict=True))
    first, second = (
        [positional_scores(*load(path), *pair) for pair in pairs] for path in (before, after)
    )
    for ours, theirs in zip(first, second, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
