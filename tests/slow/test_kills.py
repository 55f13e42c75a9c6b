"""Killed at every write and called again, twice at once, without room: nothing lost or doubled.

Each command runs once undisturbed in one folder, and is disturbed in another, under the same names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from diet_mt.evaluation.records import read_results
from diet_mt.system.files import sha256

from ..bert.made import write_glue
from ..commands.runner import ROOT, Command, Done, Runner, command, run_python
from ..commands.workshop import ended_state, same, state
from ..prepare.running import SMALL, stages_of, texts, write_multi30k, write_news
from ..processes import once, session_folder

pytestmark = [pytest.mark.slow, pytest.mark.hostile, pytest.mark.timeout(1800)]

# Imported by the commands, besides torch and fairseq.
MODULES = (
    *("tests.slow.killing", "diet_mt.bert.labelled_stages", "diet_mt.corpora.shared_stages"),
    *("diet_mt.evaluation.evaluate", "diet_mt.evaluation.predict", "diet_mt.experiments.jobs"),
    *("diet_mt.experiments.train", "sklearn.metrics"),
)
# Of a row; a checkpoint's checksum, too, is that of a file with readings of the clock.
TIMES = {f"{unit}_per_second" for unit in ("sentences", "tokens", "words")}
TIMES |= {"checkpoint_sha256", "date", "revision"}
ENCODER, DECODER = (
    f" --{side}-layers 1 --{side}-embed-dim 16 --{side}-ffn-embed-dim 16 --{side}-attention-heads 2"
    for side in ("encoder", "decoder")
)
# Saves within epochs of six updates and at their ends. The rate falls at the end of the second.
TRAIN = "train data diet_rel_tiny --recipe demo --gpus 0 --save-dir run --max-update 14"
TRAIN += " --max-tokens 1000 --save-interval-updates 4 --keep-interval-updates 1 --num-workers 0"
TRAIN += " --lr-scheduler reduce_lr_on_plateau --warmup-updates 1 --lr-patience 0"
TRAIN += " --lr-threshold 0.5" + ENCODER + DECODER
DEMO = "--train-pairs 100 --valid-pairs 12 --test-pairs 7 --bpe-merges 80 --workers 1"
MLM = "pretrain mlm diet_rel --recipe mlm --size tiny --gpus 0 --save-dir run --max-update 6"
MLM += " --sequences-per-update 8 --max-tokens-per-device 2000 --tokens-per-sample 24"
MLM += " --save-interval-updates 4 --validate-interval-updates 4 --num-workers 0" + ENCODER
SHORT = f"--max-update 2 --gpus 0 --num-workers 0 {ENCODER} {DECODER}"
SWEEP = "sweep demo --jobs 1 --set data=made --set corpus=made --set system=[diet_rel]"
for step, options in (("train", SHORT), ("prepare", DEMO)):
    SWEEP += f" --set {step}_options=[{','.join(options.split())}]"
GLUE_SIZES = {"train": 48, "dev": 12, "test": 5}
GLUE = "prepare glue CoLA --from glue --vocab mlm --max-length 24 --workers 1 --out "
TUNE = "finetune CoLA pretrained/checkpoint_best.pt --recipe glue --gpus 0 --lr 0.003"
TUNE += " --max-epoch 2 --batch-size 16 --num-workers 0 --save-dir run"
SMALL_BPE = " ".join(SMALL)
MLM_DATA = "prepare mlm --train data/raw/train.en --valid data/raw/valid.en --vocab-size 60"
MLM_DATA += " --max-length 24 --workers 1 --out "
COMMANDS = {
    "prepare": f"prepare demo --out made {DEMO}",
    "multi30k": "prepare multi30k --out made --from multi30k --manifest multi30k/manifest "
    + SMALL_BPE,
    "newstest": f"prepare newstest en-cs --out made --from news {SMALL_BPE}",
    "prepare mlm": f"{MLM_DATA}made",
    "prepare glue": f"{GLUE}made",
    "train": TRAIN,
    "pretrain": MLM,
    "finetune": TUNE,
    "evaluate": "evaluate data trained --beam 2",
    "evaluate text": "evaluate data trained --beam 2 --source data/raw/test.en --reference "
    "data/raw/test.de",
    "evaluate penalties": "evaluate data trained --beam 2 --tune-lenpen 0 1",
    "bitext": "prepare bitext en-de --from data/raw --out made --certainty 2 --bpe-merges 80 "
    "--workers 1",
    "predict": "predict CoLA tuned/checkpoint_best.pt --predictions predicted --results rows",
    "average": "average --last 2 --dir trained --out mean.pt",
    "sweep": SWEEP,
}
# A sweep's own moments, and how its commands begin and end.
SOME = {"sweep": r"sweep\.log|\.lock|SHA256SUMS|checkpoint_last|/done|decoded/.*json|jsonl"}


def diet_mt(words: str, cwd: Path, journal: Path | None = None, **env: str) -> Command:
    """``diet-mt`` by ``killing.py``."""
    script = Path(__file__).with_name("killing.py")
    return command(str(script), journal or os.devnull, words.split(), cwd=cwd, env=env)


def run(server: Runner, *given: Any, **options: Any) -> Done:
    return server.together(diet_mt(*given, **options))[0]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Forks that have imported all of ``diet-mt``."""
    runner = Runner(tmp_path_factory.mktemp("server"), *MODULES)
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, server: Runner) -> Path:
    """Original files, data of every kind, and a training of every kind."""

    def fill(folder: Path) -> None:
        for name, write in (("multi30k", write_multi30k), ("news", write_news)):
            (folder / name).mkdir()
            write(folder / name)
        write_glue(folder / "glue", GLUE_SIZES)
        for words in (
            f"prepare demo --out data {DEMO}",
            TRAIN.replace("run", "trained").replace("updates 1 ", "updates 2 "),
            f"{MLM_DATA}mlm",
            MLM.replace("--save-dir run", "--save-dir pretrained"),
            f"{GLUE}CoLA",
            TUNE.replace("--save-dir run", "--save-dir tuned"),
        ):
            run(server, words, folder).ok()

    return once(session_folder(tmp_path_factory), "kills", fill)


def place(base: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("data", "mlm", "multi30k", "news", "glue", "CoLA", "pretrained"):
        (folder / name).symlink_to(base / name)
    for name in ("trained", "tuned"):
        shutil.copytree(base / name, folder / name)
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows, which must be of checkpoints that are there."""
    entries = [
        json.loads(line)
        for path in sorted(folder.rglob("*.jsonl"))
        if path.parent.name != "sentences"
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    there = {sha256(path) for path in folder.rglob("*.pt")} if entries else set()
    assert {row["checkpoint_sha256"] for row in entries} <= there
    comparable = [{name: row[name] for name in row if name not in TIMES} for row in entries]
    return sorted(comparable, key=lambda row: json.dumps(row, sort_keys=True))


def left(folder: Path) -> dict[str, Any]:
    """All that a command made, without times, locks and logs."""
    content: dict[str, Any] = {"rows": rows(folder)}
    if (folder / "made").is_dir():
        content["data"] = texts(folder / "made")
        content["stages"] = stages_of(folder / "made")
    for pattern in (
        "**/*.hyp.txt",
        "**/sentences/*.jsonl.xz",
        "predicted/*",
        "run/command",
        "run/done",
    ):
        for path in folder.glob(pattern):
            content[str(path.relative_to(folder))] = path.read_bytes()
    for path in folder.rglob("*.pt"):
        content[str(path.relative_to(folder))] = ended_state(path.parent, path.name)
    return content


def assert_same(one: Path, other: Path) -> None:
    expected, content = left(one), left(other)
    # Killed right after a save, a training does not remove the checkpoint that is one too many.
    surplus = content.keys() - expected.keys()
    assert all(re.fullmatch(r"run/checkpoint_\d+_\d+\.pt", name) for name in surplus), surplus
    for name, value in expected.items():
        assert same(value, content.get(name)), name
    unfinished = [path for end in ("part", "tmp") for path in other.rglob(f"*.{end}")]
    assert [path for path in unfinished if "decoded" not in path.parts] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_every_write_and_called_again(
    name: str, base: Path, tmp_path: Path, server: Runner, record_property: Any
) -> None:
    """SIGKILL of the whole group, each time a moment later; then as if nothing had happened."""
    words, only = COMMANDS[name], SOME.get(name, "")
    whole, killed = (place(base, tmp_path / each) for each in ("whole", "killed"))
    moments, killed_at = tmp_path / "moments", tmp_path / "killed_at"
    moments.touch()
    killed_at.touch()

    def call(folder: Path, journal: Path | None = None, kill: str = "") -> Done:
        return run(server, words, folder, journal, DIET_KILL=kill, DIET_MOMENTS=only)

    call(whole, moments).ok()
    while (last := call(killed, killed_at, "next")).status == -SIGKILL:
        pass
    last.ok()
    assert_same(whole, killed)
    call(killed).ok()  # finished: nothing is done again
    assert_same(whole, killed)
    # The moments that no call reaches once it was killed at the one before.
    expected, reached = (path.read_text().splitlines() for path in (moments, killed_at))
    others = [moment for moment in expected if moment not in reached]
    assert len(others) < len(expected) / 3, others
    for number, moment in enumerate(others):
        folder = place(base, tmp_path / f"killed.{number}")
        assert call(folder, kill=moment).status == -SIGKILL, moment
        call(folder).ok()
        assert_same(whole, folder)
    record_property("hostile", len(reached) + len(others))


@pytest.mark.parametrize(
    "name", ["prepare", "train", "pretrain", "finetune", "evaluate", "average", "predict"]
)
def test_two_at_once(
    name: str, base: Path, tmp_path: Path, server: Runner, record_property: Any
) -> None:
    """One works, and the other waits or names it; both together leave what one leaves."""
    words = COMMANDS[name]
    whole, both = (place(base, tmp_path / each) for each in ("whole", "both"))
    run(server, words, whole).ok()
    done = server.together(*[diet_mt(words, both)] * 2)
    assert 0 in [each.status for each in done], [each.tail() for each in done]
    for each in done:
        assert each.status == 0 or "in use by another process" in each.stderr, each.tail()
    record_property("hostile", 1)
    run(server, words, both).ok()
    assert_same(whole, both)


def test_the_same_command_gives_the_same_bytes(base: Path, tmp_path: Path, server: Runner) -> None:
    """In another process. But for readings of the clock all in the file is compared."""
    folders = [place(base, tmp_path / each) for each in ("one", "two")]
    run(server, TRAIN, folders[0]).ok()
    program = f"from diet_mt.cli.main import main; assert not main({TRAIN.split()})"
    run_python(program, cwd=folders[1], PYTHONPATH=ROOT)
    one, two = (state(folder / "run") for folder in folders)
    for each in (one, two):
        del each["extra_state"]["previous_training_time"]
        for meters in each["extra_state"]["metrics"].values():
            meters[:] = [meter for meter in meters if not meter[2].startswith(("Stop", "Time"))]
    assert same(one, two)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[int]:
    """Room for ``size`` bytes in a folder: a disk of its own for root, else a limit of each file,
    which is yielded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield size
        return
    try:
        yield 0
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# Command, folder with little room, bytes, and what the one line must say.
FULL = {
    "prepare": (COMMANDS["prepare"].replace("100", "400"), "made", 60_000, "made/"),
    "train": (TRAIN, "run", 250_000, "no space is left for run/checkpoint"),
    "decoding": (COMMANDS["evaluate"], "trained/decoded", 4096, "trained/decoded"),
    "scoring": (f"{COMMANDS['evaluate']} --results rows", "rows", 4096, "rows"),
    "average": ("average --last 2 --dir trained --out out/mean.pt", "out", 50_000, "mean.pt"),
}


@pytest.mark.parametrize("name", FULL)
def test_a_full_disk_is_said_and_loses_nothing(
    name: str, base: Path, tmp_path: Path, server: Runner, record_property: Any
) -> None:
    words, folder, size, what = FULL[name]
    full = place(base, tmp_path / "full")
    with small_disk(full / folder, size) as limit:
        failed = run(server, words, full, DIET_FILE_BYTES=str(limit))
        output = failed.stderr
        last = output.strip().split("\n")[-1]
        assert failed.status != 0, output
        assert last.startswith("error: "), output
        assert what in last, last
        assert "make room and run again" in last, last
        assert "Traceback" not in output
    record_property("hostile", 1)
    whole = place(base, tmp_path / "whole")
    run(server, words, whole).ok()
    run(server, words, full).ok()
    assert_same(whole, full)


SMALL_DEMO = (
    "sweep demo --jobs 2 --set train_options=[--max-epoch,1] --set system=[sinusoidal,diet_rel] "
    "--set prepare_options=[--train-pairs,400,--valid-pairs,20,--test-pairs,21,--bpe-merges,200]"
)


def test_the_demo_from_nothing_to_the_table_and_again(tmp_path: Path, server: Runner) -> None:
    table = run(server, SMALL_DEMO, tmp_path).ok().stdout
    assert table.startswith("generated word order, en-de, "), "the table alone"
    log = tmp_path / "checkpoints/demo/diet_rel.1/train.log"
    written = log.stat().st_mtime_ns
    assert run(server, SMALL_DEMO, tmp_path).ok().stdout == table
    assert log.stat().st_mtime_ns == written
    results = read_results(tmp_path / "checkpoints/demo/results/demo.en-de.jsonl")
    assert sorted(row.arch for row in results) == ["diet_rel_tiny", "sinusoidal_tiny"]
    assert {(row.sentences, row.beam, row.lenpen) for row in results} == {(21, 10, 0.6)}
