"""scripts/evaluate.sh: one decoding, one row, which says what was done."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from diet_mt.evaluation import score
from diet_mt.evaluation.generation_options import mark_of
from diet_mt.evaluation.records import read_results, sha256

from ..calling import called
from .prepared import run

ROOT = Path(__file__).resolve().parent.parent.parent
EVALUATE = str(ROOT / "scripts" / "evaluate.sh")
DATA = "data/toy.en-de/bin"


def changed(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def refused(place: Path, *arguments: str, **settings: str) -> str:
    """The one line that it says with status 2."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run([EVALUATE, *arguments], place, **settings)
    assert caught.value.returncode == 2
    said = str(caught.value.stderr)
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    return said


def test_the_other_direction_has_its_own_test_set(place: Path) -> None:
    said = run(
        [EVALUATE, DATA, "back", "--max-len-b", "5"], place, LENGTH_PENALTY="gnmt", RESULTS="both"
    )
    (result,) = read_results(place / "both" / "toy.en-de.jsonl")
    scores = f"BLEU {result.bleu:.2f} ({result.bleu_mean:.2f} ± {result.bleu_ci:.2f}) nrefs:1"
    assert scores in said.stdout
    assert (result.direction, result.length_penalty) == ("de-en", "gnmt")
    assert (result.test_set, result.sentences) == ("toy.en-de test1", 11)
    assert result.references_sha256 == sha256(place / "data" / "toy.en-de" / "raw" / "test1.en")
    mark = mark_of("--max-len-b 5")
    assert result.hypotheses.endswith(
        f".5.subset-test1.length_penalty-gnmt.direction-de-en.options-{mark}.hyp.txt"
    )
    for words in ("--task diet_translation --length-penalty gnmt", "-s de -t en"):
        assert words in result.generate_command
    name = f"decoded.checkpoint_best.pt.test1.beam10.lenpen0.6.gnmt.options-{mark}"
    assert (place / "back" / name).exists()


def test_a_result_scores_again_and_stays_as_it_is(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [EVALUATE, DATA, "run", "--max-len-b", "5"]
    first = run(command, place)
    assert "decoding test" in first.stderr
    rows = place / "results" / "toy.en-de.jsonl"
    (result,) = read_results(rows)
    assert (result.sentences, result.beam, result.lenpen) == (13, 10, 0.6)
    assert (result.system, result.direction, result.device) == ("diet_rel", "en-de", "cpu")
    assert (result.options, result.subwords, result.threads) == ("--max-len-b 5", "bpe", 1)
    assert result.train_command == "fairseq-train data/toy.en-de/bin --save-dir checkpoints/run"
    assert "--beam 10 --lenpen 0.6 " in result.generate_command
    assert result.generate_command.endswith(" --max-len-b 5")
    assert str(place) not in rows.read_text(encoding="utf-8")
    assert result.checkpoint_sha256 == sha256(place / "run" / "checkpoint_best.pt")
    assert (result.length_penalty, result.averaged, result.train_tokens) == ("fairseq", 1, 840)
    assert result.words_per_second > 0
    assert "--task" not in result.generate_command

    before = changed(place / "results") | changed(place / "run")
    second = run(command, place, OMP_NUM_THREADS="2")
    assert "is there already" in second.stderr
    assert changed(place / "results") | changed(place / "run") == before

    references = place / "data" / "toy.en-de" / "raw" / "test.de"
    again = [str(rows), "--references"]
    assert called("verify", *again, str(references)) == 0
    assert called("verify", *again, str(references.with_suffix(".en"))) == 2
    rows.write_text(rows.read_text().replace(f'"bleu": {result.bleu}', '"bleu": 99.5'))
    assert called("verify", *again, str(references)) == 2
    assert f"bleu 99.5 stored, {result.bleu} now" in capsys.readouterr().out


# Writes what is read of fairseq-generate, and a line for each time that it is called.
GENERATE = r"""#!/bin/sh
echo called >>calls
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'H-%s\t-0.5\tein Hund\n' $i; done
echo 'Translated 13 sentences (39 tokens) in 1.0s (13.0 sentences/s, 39.0 tokens/s)'
"""


@pytest.fixture
def stand_in(place: Path, tmp_path: Path) -> Path:
    """A place of its own, with what passes for fairseq-generate."""
    for name in ("data", "run"):
        (tmp_path / name).symlink_to(place / name)
    (tmp_path / "own").mkdir()
    for name in ("checkpoint_best.pt", "command", "done"):
        (tmp_path / "own" / name).write_bytes((place / "run" / name).read_bytes())
    program = tmp_path / "bin" / "fairseq-generate"
    program.parent.mkdir()
    program.write_text(GENERATE, encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


def test_a_row_is_about_the_decoding(stand_in: Path) -> None:
    run([EVALUATE, DATA, "own"], stand_in, str(stand_in / "bin"))
    decoded = stand_in / "own" / "decoded.checkpoint_best.pt.test.beam10.lenpen0.6"
    command, facts = (decoded.with_name(f"{decoded.name}.{name}") for name in ("command", "facts"))
    earlier = json.loads(facts.read_text()) | {"date": "2020-02-02", "revision": "v0", "threads": 9}
    facts.write_text(json.dumps(earlier), encoding="utf-8")
    files = [stand_in / DATA, stand_in / "own" / "checkpoint_best.pt", decoded, f"{decoded}.log"]
    options = ["--generate-command", command, "--facts", facts, "--results", stand_in / "again"]
    words = [*files, *options, "--beam", 10, "--lenpen", 0.6]
    assert score.main([str(word) for word in words]) == 0
    (row,) = read_results(stand_in / "again" / "toy.en-de.jsonl")
    assert (row.date, row.revision, row.threads) == ("2020-02-02", "v0", 9)

    assert (stand_in / "calls").read_text() == "called\n"
    facts.unlink()  # as a decoding of before there were any
    run([EVALUATE, DATA, "own"], stand_in, str(stand_in / "bin"))
    assert facts.exists()
    assert (stand_in / "calls").read_text() == "called\n" * 2


def test_a_setting_is_no_option(place: Path) -> None:
    said = refused(place, DATA, "run", "--nbest", "2", "--beam=1", BEAM="2", RESULTS="none")
    assert said.startswith("error: --beam: set BEAM;")
    assert not (place / "none").exists()
    assert not list((place / "run").glob("*beam2*"))


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [("LENGTH_PENALTY", "google", "fairseq or gnmt"), ("SUBWORDS", "bytes", "bpe or spm")],
)
def test_it_says_what_there_is_to_choose(place: Path, name: str, value: str, choices: str) -> None:
    said = refused(place, DATA, "run", **{name: value})
    assert said == f"error: {name} '{value}': choose {choices}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["data/toy.en-de/raw", "run"], "holds no data made by fairseq-preprocess"),
        ([DATA, "nowhere"], "no such checkpoint; train first"),
        ([DATA], "usage: "),
        (["data/plain.en-de/bin", "run"], "should hold one of bpe.codes and spm.model"),
    ],
)
def test_it_says_what_is_missing(place: Path, arguments: list[str], complaint: str) -> None:
    assert complaint in refused(place, *arguments)
