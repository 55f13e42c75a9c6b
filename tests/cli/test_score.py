"""From fairseq-generate's output to a record, and the record scored again."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_training_parser, parse_args_and_arch
from fairseq.tasks import setup_task
from omegaconf import OmegaConf

from diet_mt.cli import rescore
from diet_mt.cli.decoded import Decoded
from diet_mt.cli.score import USUAL, hypotheses_name, interval, score, words_per_second
from diet_mt.cli.trained import direction_of, language_pair, portable, read_training, system_of
from diet_mt.errors import UserError
from diet_mt.records import read_results, sha256

ROOT = Path(__file__).resolve().parent.parent.parent


def test_bleu_by_hand() -> None:
    # Every n-gram is right, and one of six words is missing: the brevity penalty alone remains.
    scores = score(["a b c d e"], ["a b c d e f"])
    assert scores.bleu == pytest.approx(100 * math.exp(1 - 6 / 5), abs=1e-4)
    assert "tok:13a" in scores.bleu_signature
    assert "nc:6" in scores.chrf_signature
    assert score(["Ein Hund."], ["Ein Hund."]).chrf == 100


def test_the_interval_of_bleu() -> None:
    """A score that every resample has has no width; that of half-right sentences has."""
    right = ["a b c d e"] * 8
    assert interval(right, right) == (100.0, 0.0)
    mixed = ["a b c d e", "a b c d x"] * 4
    mean, half = interval(mixed, right)
    assert interval(mixed, right) == (mean, half)
    assert mean == pytest.approx(score(mixed, right).bleu, abs=3)
    assert 3 < half < 30


def test_words_per_second_by_hand() -> None:
    # Three sentences of four words in all, six sentences a second: half a second.
    decoded = Decoded([], sentences_per_second=6.0, tokens_per_second=1.0)
    assert words_per_second(["ein Hund", "", "zwei Katzen"], decoded) == 8.0


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(UserError, match="1 hypotheses but 2 references"):
        score(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "c/x_tiny.3.hyp.txt"),
        ({"beam": 5, "lenpen": 1.0}, "c/x_tiny.3.beam-5.lenpen-1.0.hyp.txt"),
        ({"subset": "valid"}, "c/x_tiny.3.subset-valid.hyp.txt"),
        ({"checkpoint": "averaged.pt"}, "c/x_tiny.3.checkpoint-averaged.hyp.txt"),
        ({"length_penalty": "gnmt"}, "c/x_tiny.3.length_penalty-gnmt.hyp.txt"),
        ({"direction": "en-de"}, "c/x_tiny.3.direction-en-de.hyp.txt"),
    ],
)
def test_other_ways_of_decoding_have_files_of_their_own(
    changes: dict[str, Any], expected: str
) -> None:
    assert hypotheses_name("c", "x_tiny", 3, **{**USUAL, **changes}) == expected


@pytest.mark.parametrize(
    ("arch", "system"),
    [
        ("diet_rel_tiny", "diet_rel"),
        ("none_big", "none"),
        ("transformer", "transformer"),
        ("transformer_iwslt_de_en", "transformer_iwslt_de_en"),
    ],
)
def test_the_system_of_an_architecture(arch: str, system: str) -> None:
    assert system_of(arch) == system


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            r"fairseq-train /home/a/data/m.en-de/bin --user-dir /x/y/diet_mt --adam-betas "
            r"\(0.9\,\ 1\) --save-dir /mnt/runs/diet.1 --seed 1",
            "fairseq-train data/m.en-de/bin --user-dir diet_mt --adam-betas '(0.9, 1)' "
            "--save-dir checkpoints/diet.1 --seed 1",
        ),
        (
            "fairseq-train /data/m/bin --save-dir /a/x.1 --tensorboard-logdir /a/x.1/tensorboard",
            "fairseq-train data/m/bin --save-dir checkpoints/x.1 "
            "--tensorboard-logdir checkpoints/x.1/tensorboard",
        ),
        (
            "fairseq-generate data/m/bin --path=/a/b/c/best.pt --cpu",
            "fairseq-generate data/m/bin --path=checkpoints/c/best.pt --cpu",
        ),
    ],
)
def test_commands_lose_the_folders_of_the_machine(command: str, expected: str) -> None:
    assert portable(command) == expected


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared corpus and an untrained model: data/toy.en-de/{raw,bin} and run/."""
    folder = tmp_path_factory.mktemp("evaluate")
    raw, data = folder / "data" / "toy.en-de" / "raw", folder / "data" / "toy.en-de" / "bin"
    raw.mkdir(parents=True)
    # Not a multiple of eight: one distribution of fairseq is tempted to drop five of them.
    sides = {"en": ["red dog", "old cat", "a man"] * 5, "de": ["ein Hund", "die Katze", "Mann"] * 5}
    for lang, lines in sides.items():
        for split in ("train", "valid", "test"):
            (raw / f"{split}.{lang}").write_text("".join(f"{x}\n" for x in lines[:13]))
    command = ["fairseq-preprocess", "--source-lang", "en", "--target-lang", "de"]
    command += ["--joined-dictionary", "--destdir", str(data)]
    for split in ("train", "valid", "test"):
        command += [f"--{split}pref", str(raw / split)]
    run(command, folder)
    (data / "bpe.codes").touch()
    plain = folder / "data" / "plain.en-de" / "bin"
    plain.mkdir(parents=True)
    (plain / "preprocess.log").touch()
    _write_checkpoint(data, folder / "run", "-s", "en", "-t", "de")
    _write_checkpoint(data, folder / "back", "-s", "de", "-t", "en")
    return folder


def run(command: list[str], cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **settings}
    environment["PYTHON"] = sys.executable
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=True, timeout=120
    )


def _write_checkpoint(data: Path, save: Path, *more: str) -> None:
    """What a training leaves after two epochs of seven updates in all, five of them metered."""
    words = [str(data), "--arch", "diet_rel_tiny", "--share-all-embeddings", "--seed", "5"]
    args = parse_args_and_arch(get_training_parser(), [*words, "--save-dir", str(save), *more])
    cfg = convert_namespace_to_omegaconf(args)
    model = setup_task(cfg.task).build_model(cfg.model)
    save.mkdir()
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": model.state_dict(),
        "optimizer_history": [{"num_updates": 7, "lr_scheduler_state": {}}],
        "extra_state": {
            "train_iterator": {"epoch": 3, "iterations_in_epoch": 0},
            "metrics": {
                "train": [(180, "wpb", "AverageMeter", {"sum": 1, "count": 1})],
                "default": [(180, "wpb", "AverageMeter", {"sum": 600.0, "count": 5})],
            },
        },
    }
    torch.save(state, save / "checkpoint_best.pt")
    (save / "command").write_text(f"fairseq-train {data} --save-dir {save}")
    (save / "done").touch()


def test_facts_of_a_training(place: Path) -> None:
    training = read_training(
        place / "run" / "checkpoint_best.pt", place / "data" / "toy.en-de" / "bin"
    )
    state = torch.load(place / "run" / "checkpoint_best.pt", weights_only=True)["model"]
    # Shared: the embeddings of both sides and the output layer.
    shared = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")
    buffers = ("position_signature", "encoder.version", "decoder.version")
    counted = sum(v.numel() for k, v in state.items() if k not in shared + buffers)
    assert training.parameters == counted
    assert (training.arch, training.seed) == ("diet_rel_tiny", 5)
    assert (training.updates, training.epoch) == (7, 2)
    assert (training.train_tokens, training.averaged) == (840, 1)  # 120 an update
    assert "diet-rel" in training.positions


def test_a_damaged_checkpoint_is_refused_in_one_line(place: Path, tmp_path: Path) -> None:
    whole = (place / "run" / "checkpoint_best.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cut\.pt: ") as caught:
        read_training(tmp_path / "cut.pt", place / "data" / "toy.en-de" / "bin")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="no such checkpoint"):
        read_training(tmp_path / "gone.pt", place)


def test_the_language_pair_is_that_of_the_data(place: Path) -> None:
    assert language_pair(place / "data" / "toy.en-de" / "bin", "test") == ("en", "de")
    with pytest.raises(UserError, match="no 'test1' data"):
        language_pair(place / "data" / "toy.en-de" / "bin", "test1")


def test_the_direction_is_that_of_the_checkpoint(place: Path, tmp_path: Path) -> None:
    data = place / "data" / "toy.en-de" / "bin"
    assert direction_of(place / "run" / "checkpoint_best.pt", data, "test") == ("en", "de")
    assert direction_of(place / "back" / "checkpoint_best.pt", data, "test") == ("de", "en")
    (tmp_path / "test.cs-en.cs.idx").touch()
    with pytest.raises(UserError, match=r"translates de-en, but .* holds cs-en"):
        direction_of(place / "back" / "checkpoint_best.pt", tmp_path, "test")


def test_both_directions_and_penalties_from_one_folder(place: Path) -> None:
    data = place / "data" / "toy.en-de" / "bin"
    command = [str(ROOT / "scripts" / "evaluate.sh"), str(data), "back", "--max-len-b", "5"]
    said = run(command, place, LENGTH_PENALTY="gnmt", RESULTS="both", SUBSET="valid")
    (result,) = read_results(place / "both" / "toy.en-de.jsonl")
    scores = f"BLEU {result.bleu:.2f} ({result.bleu_mean:.2f} ± {result.bleu_ci:.2f}) nrefs:1"
    assert scores in said.stdout
    assert (result.direction, result.length_penalty) == ("de-en", "gnmt")
    assert result.references_sha256 == sha256(data.parent / "raw" / "valid.en")
    assert result.hypotheses.endswith(".5.subset-valid.length_penalty-gnmt.direction-de-en.hyp.txt")
    for words in ("--task diet_translation --length-penalty gnmt", "-s de -t en"):
        assert words in result.generate_command
    assert (place / "back" / "decoded.checkpoint_best.pt.valid.beam10.lenpen0.6.gnmt").exists()


def test_evaluate_keeps_a_result_that_scores_again(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = place / "data" / "toy.en-de" / "bin"
    command = [str(ROOT / "scripts" / "evaluate.sh"), str(data), "run", "--max-len-b", "5"]
    first = run(command, place)
    assert "decoding test" in first.stderr
    rows = place / "results" / "toy.en-de.jsonl"
    (result,) = read_results(rows)
    assert (result.sentences, result.beam, result.lenpen) == (13, 10, 0.6)
    assert (result.system, result.direction, result.device) == ("diet_rel", "en-de", "cpu")
    assert result.train_command == "fairseq-train data/toy.en-de/bin --save-dir checkpoints/run"
    assert "--beam 10 --lenpen 0.6 " in result.generate_command
    assert result.generate_command.endswith(" --max-len-b 5")
    assert str(place) not in rows.read_text(encoding="utf-8")
    assert result.checkpoint_sha256 == sha256(place / "run" / "checkpoint_best.pt")
    assert (result.length_penalty, result.averaged, result.train_tokens) == ("fairseq", 1, 840)
    assert result.words_per_second > 0
    assert "--task" not in result.generate_command

    second = run(command, place)
    assert "is there already" in second.stderr
    assert read_results(rows) == [result]

    references = place / "data" / "toy.en-de" / "raw" / "test.de"
    again = [str(rows), "--references"]
    assert rescore.main([*again, str(references)]) == 0
    assert rescore.main([*again, str(references.with_suffix(".en"))]) == 2
    rows.write_text(rows.read_text().replace(f'"bleu": {result.bleu}', '"bleu": 99.5'))
    assert rescore.main([*again, str(references)]) == 2
    assert f"bleu 99.5 stored, {result.bleu} now" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [("LENGTH_PENALTY", "google", "fairseq or gnmt"), ("SUBWORDS", "bytes", "bpe or spm")],
)
def test_evaluate_says_what_there_is_to_choose(
    place: Path, name: str, value: str, choices: str
) -> None:
    command = [str(ROOT / "scripts" / "evaluate.sh"), "data/toy.en-de/bin", "run"]
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(command, place, **{name: value})
    assert caught.value.returncode == 2
    assert caught.value.stderr == f"error: {name} '{value}': choose {choices}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["data/toy.en-de/raw", "run"], "holds no data made by fairseq-preprocess"),
        (["data/toy.en-de/bin", "nowhere"], "no such checkpoint; train first"),
        (["data/toy.en-de/bin"], "usage: "),
        (["data/plain.en-de/bin", "run"], "should hold one of bpe.codes and spm.model"),
    ],
)
def test_evaluate_says_what_is_missing(place: Path, arguments: list[str], complaint: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run([str(ROOT / "scripts" / "evaluate.sh"), *arguments], place)
    assert caught.value.returncode == 2
    assert caught.value.stderr.startswith("error: ")
    assert complaint in caught.value.stderr
    assert caught.value.stderr.count("\n") == 1
