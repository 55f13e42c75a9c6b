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
from diet_mt.cli.decoded import read_decoded
from diet_mt.cli.score import USUAL, hypotheses_name, score
from diet_mt.cli.trained import language_pair, portable, read_training, system_of
from diet_mt.errors import UserError
from diet_mt.records import read_results, sha256

ROOT = Path(__file__).resolve().parent.parent.parent
LOG = "INFO: Translated 3 sentences (12 tokens) in 0.5s (6.00 sentences/s, 24.50 tokens/s)\n"


def decoded(tmp_path: Path, output: str, log: str = LOG) -> Any:
    (tmp_path / "out").write_text(output, encoding="utf-8", newline="\n")
    (tmp_path / "log").write_text(log, encoding="utf-8", newline="\n")
    return read_decoded(tmp_path / "out", tmp_path / "log")


def test_hypotheses_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    # Batches are sorted by length; of an n-best list the first is best; the second says nothing;
    # U+2028 is no line end.
    output = (
        "S-2\tx\nT-2\ty\nH-2\t-0.5\tzwei\u2028 @-@ drei\nD-2\t-0.5\tH-9\nP-2\t-1 -2\n"
        "H-0\t-0.1\tnull\nH-0\t-0.9\tworse\nH-1\t-3\t\n"
    )
    found = decoded(tmp_path, output)
    assert found.hypotheses == ["null", "", "zwei\u2028 @-@ drei"]
    assert (found.sentences_per_second, found.tokens_per_second) == (6.0, 24.5)


def test_the_log_may_be_on_either_side(tmp_path: Path) -> None:
    assert decoded(tmp_path, "H-0\t-1\ta\n" + LOG, log="").sentences_per_second == 6.0


@pytest.mark.parametrize(
    ("output", "log", "complaint"),
    [
        ("H-0\t-1\ta\nH-2\t-1\tc\n", LOG, "no hypothesis for sentence 1"),
        ("", LOG, "no hypothesis for sentence 0"),
        ("H-0\t-1\ta\n", "", "did not get to its end"),
    ],
)
def test_an_incomplete_output_is_refused(
    tmp_path: Path, output: str, log: str, complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        decoded(tmp_path, output, log)


def test_bleu_by_hand() -> None:
    # Every n-gram is right, and one of six words is missing: the brevity penalty alone remains.
    scores = score(["a b c d e"], ["a b c d e f"])
    assert scores.bleu == pytest.approx(100 * math.exp(1 - 6 / 5), abs=1e-4)
    assert "tok:13a" in scores.bleu_signature
    assert "nc:6" in scores.chrf_signature
    assert score(["Ein Hund."], ["Ein Hund."]).chrf == 100


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
    _write_checkpoint(data, folder / "run")
    return folder


def run(command: list[str], cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **settings}
    environment["PYTHON"] = sys.executable
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=True, timeout=120
    )


def _write_checkpoint(data: Path, save: Path) -> None:
    """What a training leaves after two epochs of seven updates in all."""
    words = [str(data), "--arch", "diet_rel_tiny", "--share-all-embeddings", "--seed", "5"]
    args = parse_args_and_arch(get_training_parser(), [*words, "--save-dir", str(save)])
    cfg = convert_namespace_to_omegaconf(args)
    model = setup_task(cfg.task).build_model(cfg.model)
    save.mkdir()
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": model.state_dict(),
        "optimizer_history": [{"num_updates": 7, "lr_scheduler_state": {}}],
        "extra_state": {"train_iterator": {"epoch": 3, "iterations_in_epoch": 0}},
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
    ("arguments", "complaint"),
    [
        (["data/toy.en-de/raw", "run"], "holds no data made by fairseq-preprocess"),
        (["data/toy.en-de/bin", "nowhere"], "no such checkpoint; train first"),
        (["data/toy.en-de/bin"], "usage: "),
    ],
)
def test_evaluate_says_what_is_missing(place: Path, arguments: list[str], complaint: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run([str(ROOT / "scripts" / "evaluate.sh"), *arguments], place)
    assert caught.value.returncode == 2
    assert caught.value.stderr.startswith("error: ")
    assert complaint in caught.value.stderr
    assert caught.value.stderr.count("\n") == 1
