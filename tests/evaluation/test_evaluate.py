"""diet-mt evaluate: one decoding, one row, which says what was done."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch

from diet_mt.cli.main import main
from diet_mt.evaluation import generation, test_sets
from diet_mt.evaluation.options import shell
from diet_mt.evaluation.records import Result, read_results
from diet_mt.files import sha256

from ..held import held

DATA = "data/toy.en-de"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own, with the data and the checkpoints of all."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(place / "data")
    for name in ("run", "back"):
        shutil.copytree(place / name, tmp_path / name)
    return tmp_path


def rows(folder: str = "results") -> list[Result]:
    return read_results(Path(folder) / "toy.en-de.jsonl")


def changed() -> dict[str, int]:
    files = (path for path in Path().rglob("[!.]*") if path.is_file())
    return {str(path): path.stat().st_mtime_ns for path in files}


def test_a_result_scores_again_and_stays_as_it_is(here: Path, capsys: Captured) -> None:
    command = ["evaluate", DATA, "run", "--max-len-b", "5"]
    assert main(command) == 0
    assert "decoding toy.en-de test with run/checkpoint_best.pt" in capsys.readouterr().err
    (result,) = rows()
    assert (result.sentences, result.beam, result.lenpen) == (13, 10, 0.6)
    assert (result.system, result.direction, result.device) == ("diet_rel", "en-de", "cpu")
    assert (result.options, result.subwords, result.threads) == ({"max-len-b": 5}, "bpe", 1)
    assert shell(result.training) == "fairseq-train data/toy.en-de/bin --save-dir checkpoints/run"
    assert (result.evaluation["beam"], result.evaluation["lenpen"]) == (10, 0.6)
    assert (result.evaluation["max-len-b"], "task" in result.evaluation) == (5, False)
    assert str(here) not in Path("results/toy.en-de.jsonl").read_text(encoding="utf-8")
    assert result.checkpoint_sha256 == sha256(Path("run/checkpoint_best.pt"))
    assert (result.length_penalty, result.averaged, result.train_tokens) == ("fairseq", 1, 840)
    assert result.words_per_second > 0
    before = changed()
    assert main(command) == 0
    assert "is there already" in capsys.readouterr().err
    assert changed() == before

    again = ["verify", "results/toy.en-de.jsonl", "--references"]
    assert main([*again, f"{DATA}/raw/test.de"]) == 0
    assert main([*again, f"{DATA}/raw/test.en"]) == 2


def test_folders_whose_names_are_not_utf8(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute paths, so that commands, records and messages have them; a program of ASCII."""
    folder = here / os.fsdecode(b"f\xe9\xff")
    folder.mkdir()
    for name in ("data", "run"):
        (here / name).rename(folder / name)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    command = ["evaluate", str(folder / DATA), str(folder / "run"), "--max-len-b", "5"]
    results = folder / "results"
    for _ in range(2):  # decoded once
        assert main([*command, "--results", str(results), "--beam", "1"]) == 0
    (result,) = rows(str(results))
    assert result.sentences == 13
    references = str(folder / DATA / "raw" / "test.de")
    assert main(["verify", str(results / "toy.en-de.jsonl"), "--references", references]) == 0


@pytest.mark.usefixtures("forked")
def test_the_validation_set_chooses_the_length_penalty(here: Path, capsys: Captured) -> None:
    """Each value is decoded and scored by itself, too; the best one decodes the test set."""
    values = ["-3", "0.6", "3"]
    command = ["evaluate", DATA, "run", "--max-len-b", "5", "--beam", "3"]
    for value in values:
        given = ["--lenpen", value, "--subset", "valid", "--results", "alone"]
        assert main([*command, *given]) == 0
    alone = {f"{row.lenpen:g}": row.bleu for row in rows("alone")}
    best = max(values, key=alone.__getitem__)
    capsys.readouterr()
    assert main([*command, "--tune-lenpen", *values]) == 0
    assert "decoding toy.en-de valid" not in capsys.readouterr().err  # they are there already
    (result,) = rows()
    assert result.lenpen_tried == " ".join(f"{value}:{alone[value]:.2f}" for value in values)
    assert (f"{result.lenpen:g}", result.test_set) == (best, "toy.en-de test")
    assert f"--lenpen {best} --gen-subset test " in shell(result.evaluation)
    assert ".lenpen-tuned." in result.hypotheses
    with pytest.raises(SystemExit):
        main([*command, "--tune-lenpen", "1", "--lenpen", "1"])


@pytest.mark.usefixtures("forked")
def test_the_other_direction_has_its_own_test_set(here: Path, capsys: Captured) -> None:
    given = ["--length-penalty", "gnmt", "--max-len-b", "5", "--results", "both"]
    assert main(["evaluate", DATA, "back", *given]) == 0
    (result,) = rows("both")
    scores = f"BLEU {result.bleu:.2f} ({result.bleu_mean:.2f} ± {result.bleu_ci:.2f}) nrefs:1"
    assert scores in capsys.readouterr().out
    assert (result.direction, result.length_penalty) == ("de-en", "gnmt")
    assert (result.test_set, result.sentences) == ("toy.en-de test1", 11)
    assert result.references_sha256 == sha256(Path(DATA, "raw", "test1.en"))
    mark = "5f30335c"  # of --max-len-b 5
    assert result.hypotheses.endswith(
        f".5.subset-test1.length_penalty-gnmt.direction-de-en.options-{mark}.hyp.txt"
    )
    pair = {"source-lang": "de", "target-lang": "en"}
    own = {"task": "diet_translation", "length-penalty": "gnmt", **pair}
    assert own.items() <= result.evaluation.items()
    name = f"checkpoint_best.pt.test1.beam10.lenpen0.6.gnmt.options-{mark}"
    assert Path("back", "decoded", name).exists()


@pytest.mark.usefixtures("forked")
def test_any_pair_of_text_files(here: Path) -> None:
    """Prepared as the test set was: the sentences of the test set have its scores. A checkpoint of
    a sweep may have a comma in its name, which fairseq-preprocess would cut there.
    """
    run = str(Path("run").rename("diet_rel.encoder,decoder.1"))
    (here / "mine.en").write_bytes(Path(DATA, "raw", "test.en").read_bytes())
    (here / "mine.de").write_bytes(Path(DATA, "raw", "test.de").read_bytes())
    given = ["--beam", "2", "--max-len-b", "5"]
    assert main(["evaluate", DATA, run, *given]) == 0
    text = ["--source", "mine.en", "--reference", "mine.de"]
    assert main(["evaluate", DATA, f"{run}/checkpoint_best.pt", *text, *given]) == 0
    whole, own = rows()
    assert (own.bleu, own.chrf, own.sentences) == (whole.bleu, whole.chrf, whole.sentences)
    assert own.hypotheses_sha256 == whole.hypotheses_sha256
    assert own.references_sha256 == sha256(here / "mine.de")
    assert (own.test_set, own.corpus) == ("mine.de", "toy.en-de")
    assert ".subset-mine-" in own.hypotheses


# Writes what is read of fairseq-generate, and a line for each time that it is called.
GENERATE = r"""
open("calls", "a").write("called\n")
for number in range(13):
    print(f"H-{number}\t-0.5\tein Hund")
print("Translated 13 sentences (39 tokens) in 1.0s (13.0 sentences/s, 39.0 tokens/s)")
"""


@pytest.fixture
def stand_in(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What runs in the place of fairseq-generate: a program that a test may change."""
    program = here / "generate.py"
    program.write_text(GENERATE, encoding="utf-8")
    command = [sys.executable, str(program)]
    monkeypatch.setattr(generation, "module", lambda name, words: command)
    return program


def calls() -> int:
    return Path("calls").read_text(encoding="utf-8").count("called")


def test_a_test_set_of_sacrebleu(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    import diet_mt.corpora.testset as sets

    def sentences(name: str, pair: str) -> tuple[list[str], list[str]]:
        assert (name, pair) == ("wmt14/full", "en-de")
        return ["red dog"] * 13, ["ein Hund"] * 13

    monkeypatch.setattr(sets, "sentences", sentences)
    assert main(["evaluate", DATA, "run", "--test-set", "wmt14/full"]) == 0
    (row,) = rows()
    assert (row.test_set, row.sentences, row.bleu, row.chrf) == ("wmt14/full", 13, 0.0, 100.0)
    assert row.hypotheses == "toy.en-de/diet_rel_tiny.5.subset-wmt14_full.hyp.txt"
    monkeypatch.undo()
    capsys.readouterr()
    os.chdir(stand_in.parent)
    assert main(["evaluate", DATA, "run", "--test-set", "wmt1066", "--dry-run"]) == 2
    assert (
        "unknown test set of SacreBLEU for en-de: wmt1066; did you mean wmt16?"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("cleaned", [True, False])
def test_source_text_is_normalized_where_that_of_training_was(
    stand_in: Path, cleaned: bool
) -> None:
    data = Path("own/toy.en-de")
    shutil.copytree(Path(DATA).resolve(), data)
    if cleaned:
        (data / "clean.tsv").write_text("rules\tversion\t1\n", encoding="utf-8")
    odd = ["red\u200b\u00a0dog", *["old cat"] * 11, "a\u00ad man"]
    references = "ein\u200b Hund\n" * 13
    Path("mine.en").write_text("".join(f"{line}\n" for line in odd), encoding="utf-8")
    Path("mine.de").write_text(references, encoding="utf-8")
    text = ["--source", "mine.en", "--reference", "mine.de"]
    assert main(["evaluate", str(data), "run", *text]) == 0
    (subwords,) = Path("run/decoded").glob("mine-*/test.en")
    first, *_, last = subwords.read_text(encoding="utf-8").split("\n")[:-1]
    (row,) = rows()
    if cleaned:
        assert (first, last, row.source_mended) == ("red dog", "a man", "2 lines, rules 1")
    else:
        assert "\u200b" in first
        assert row.source_mended == ""
    assert row.references_sha256 == sha256(Path("mine.de"))


@pytest.mark.parametrize(
    ("subset", "pair", "mended"),
    [
        ("test", ("en", "de"), "3 lines, rules 1"),
        ("test", ("de", "en"), ""),  # this side is as it was
        ("test1", ("de", "en"), "4 lines, rules 1"),
        ("test1", ("en", "de"), ""),
        ("valid", ("en", "de"), ""),
    ],
)
def test_the_record_of_preparation_is_that_of_the_row(
    here: Path, subset: str, pair: tuple[str, str], mended: str
) -> None:
    data = here / "own"
    shutil.copytree(Path(DATA).resolve(), data)
    assert test_sets.of_data(data / "bin", pair, subset).mended == ""  # uncleaned
    counts = {"valid": 0, "test": 3, "test1": 4}
    lines = [f"source lines mended\t{split}\t{count}\n" for split, count in counts.items()]
    text = "".join(["pairs\tread\t9\n", *lines, "rules\tversion\t1\n"])
    (data / "clean.tsv").write_text(text, encoding="utf-8")
    assert test_sets.of_data(data / "bin", pair, subset).mended == mended


def test_what_was_decoded_is_known_by_content(stand_in: Path, capsys: Captured) -> None:
    command = ["evaluate", DATA, "run"]
    assert main(command) == 0
    facts = Path("run/decoded/checkpoint_best.pt.test.beam10.lenpen0.6.json")
    both = json.loads(facts.read_text(encoding="utf-8"))
    both["facts"] |= {"date": "2020-02-02", "revision": "v0", "threads": 9}
    facts.write_text(json.dumps(both), encoding="utf-8")
    assert main([*command, "--results", "again"]) == 0
    (row,) = rows("again")  # about the decoding, whenever it is scored
    assert (row.date, row.revision, row.threads) == ("2020-02-02", "v0", 9)
    assert calls() == 1
    # Another checkpoint in its place, with an older date: decoded anew.
    replace_checkpoint()
    os.utime("run/checkpoint_best.pt", (1, 1))
    assert main([*command, "--results", "other"]) == 0
    (row,) = rows("other")
    assert (row.updates, calls()) == (8, 2)
    assert row.checkpoint_sha256 == sha256(Path("run/checkpoint_best.pt"))
    # Other sentences under the same name.
    shutil.copytree(Path(DATA).resolve(), "changed/toy.en-de")
    index = Path("changed/toy.en-de/bin/test.en-de.en.bin")
    index.write_bytes(index.read_bytes()[::-1])
    assert main(["evaluate", "changed/toy.en-de", "run", "--results", "changed"]) == 0
    assert calls() == 3


def test_an_output_that_was_altered_is_not_scored(stand_in: Path, capsys: Captured) -> None:
    """Nor one whose log was, which may hold the hypotheses."""
    command = ["evaluate", DATA, "run"]
    assert main(command) == 0
    (before,) = rows()
    for count, name in enumerate(("", ".log"), start=2):
        path = Path(f"run/decoded/checkpoint_best.pt.test.beam10.lenpen0.6{name}")
        with open(path, "a", encoding="utf-8") as file:
            file.write("H-0\t-0.5\tdie Katze\n")
        assert main(command) == 0
        assert "is not what was decoded" in capsys.readouterr().err
        assert calls() == count
        (row,) = rows()
        assert row.hypotheses_sha256 == before.hypotheses_sha256


def replace_checkpoint() -> None:
    """The same training one update later."""
    state = torch.load("run/checkpoint_best.pt", weights_only=False)
    state["optimizer_history"][-1]["num_updates"] += 1
    torch.save(state, "run/checkpoint_best.pt")


def test_a_checkpoint_that_is_replaced_while_it_is_decoded(
    stand_in: Path, capsys: Captured
) -> None:
    """The row would say one, and its hypotheses be of the other."""
    text = 'open("run/checkpoint_best.pt", "ab").write(b"0")\n'
    stand_in.write_text(GENERATE + text, encoding="utf-8")
    assert main(["evaluate", DATA, "run"]) == 2
    assert "run/checkpoint_best.pt: replaced while it was decoded" in capsys.readouterr().err
    assert not Path("results").exists()


def test_another_training_is_refused_before_it_is_decoded(stand_in: Path, capsys: Captured) -> None:
    assert main(["evaluate", DATA, "run"]) == 0
    (before,) = rows()
    replace_checkpoint()
    with open("run/command", "a", encoding="utf-8") as file:
        file.write(" --dropout 0.5")
    assert main(["evaluate", DATA, "run"]) == 2
    assert "of another training" in capsys.readouterr().err
    assert (calls(), rows()) == (1, [before])
    assert main(["evaluate", DATA, "run", "--system", "mine"]) == 0
    assert calls() == 2


@pytest.mark.parametrize("name", ["../../escaped", "a/b", "", "..", "a b", ".hidden"])
def test_a_name_stays_in_its_folder(stand_in: Path, capsys: Captured, name: str) -> None:
    status = main(["evaluate", DATA, "run", "--system", name])
    if not name:
        assert status == 0
        return
    assert status == 2
    assert f"error: --system {name}: give letters, digits" in capsys.readouterr().err
    assert not Path("results").exists()
    assert not Path("run", "decoded").exists()


def test_one_evaluation_of_a_checkpoint_at_a_time(stand_in: Path, capsys: Captured) -> None:
    Path("run/decoded").mkdir()
    with held(Path("run/decoded")):
        assert main(["evaluate", DATA, "run"]) == 2
    assert f"run/decoded: process {os.getpid()} on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["data/toy.en-de/raw", "run"], "raw: holds no data made by fairseq-preprocess"),
        ([DATA, "run", "--subset", "test9"], "no 'test9' data made by fairseq-preprocess"),
        (["data/plain.en-de", "run"], "translates en-de, but data/plain.en-de/bin holds cs-en"),
        ([DATA, "run", "--source", "two", "--reference", "one"], "two: 2 lines, but one has 1"),
        ([DATA, "run", "--source", "none", "--reference", "none"], "none: no lines"),
        ([DATA, "run", "--source", "gone", "--reference", "one"], "gone: no such file"),
        ([DATA, "run", "--source", "latin", "--reference", "one"], "latin, line 1: not valid UTF"),
    ],
)
def test_it_says_what_is_missing(
    stand_in: Path, capsys: Captured, arguments: list[str], complaint: str
) -> None:
    for name, text in {"none": b"", "one": b"a\n", "two": b"a\nb\n", "latin": b"\xe4\n"}.items():
        Path(name).write_bytes(text)
    assert main(["evaluate", *arguments]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.strip().count("\n") == 0
    assert not Path("results").exists()


def test_a_failure_names_its_log(stand_in: Path, capsys: Captured) -> None:
    stand_in.write_text('raise SystemExit("error: no memory")\n', encoding="utf-8")
    assert main(["evaluate", DATA, "run"]) == 2
    name = "run/decoded/checkpoint_best.pt.test.beam10.lenpen0.6.log"
    assert f"error: fairseq-generate failed: no memory (all of it in {name})" in (
        capsys.readouterr().err
    )


def test_a_dry_run_prints_the_command(here: Path, capsys: Captured) -> None:
    before = changed()
    assert main(["evaluate", DATA, "run", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("fairseq-generate data/toy.en-de/bin --user-dir ")
    assert "--path run/checkpoint_best.pt --beam 10 --lenpen 0.6 --gen-subset test" in said
    assert changed() == before


def test_where_there_is_one_test_set_it_serves_both_directions(tmp_path: Path) -> None:
    (tmp_path / "test.cs-en.cs.idx").touch()
    for pair in (("en", "cs"), ("cs", "en")):
        assert test_sets.subset_of(tmp_path, pair) == "test"
    (tmp_path / "test1.cs-en.cs.idx").touch()
    assert test_sets.subset_of(tmp_path, ("en", "cs")) == "test1"
