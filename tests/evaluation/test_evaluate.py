"""diet-mt evaluate: one decoding by fairseq-generate, and one row that describes it."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
from pathlib import Path
from typing import Any, TextIO

import pytest
import torch

import diet_mt.corpora.testset as sets
from diet_mt.cli.main import main
from diet_mt.evaluation import generation
from diet_mt.evaluation.evaluate import USUAL, hypotheses_name
from diet_mt.evaluation.generation import (
    check_options,
    of_data,
    read_output,
    subset_of,
)
from diet_mt.evaluation.options import shell
from diet_mt.evaluation.records import Result, read_results
from diet_mt.evaluation.requests import Search
from diet_mt.system.errors import UserError
from diet_mt.system.files import sha256

from ..commands.runner import Runner
from ..processes import changed, held

DATA = "data/toy.en-de"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the data and the checkpoints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(place / "data")
    for name in ("run", "back"):
        shutil.copytree(place / name, tmp_path / name)
    return tmp_path


def rows(folder: str = "results") -> list[Result]:
    return read_results(Path(folder) / "toy.en-de.jsonl")


def test_a_result_scores_again_and_stays_as_it_is(here: Path, capfd: Captured) -> None:
    """Folders have names that are not UTF-8."""
    folder = here / os.fsdecode(b"f\xe9\xff")
    folder.mkdir()
    (here / "run").rename(folder / "run")
    command = ["evaluate", DATA, str(folder / "run"), "--max-len-b", "5"]
    capfd.readouterr()
    assert main(command) == 0
    assert "INFO" not in capfd.readouterr().err, "a log of fairseq"
    (result,) = rows()
    assert (result.sentences, result.beam, result.lenpen) == (13, 10, 0.6)
    assert (result.system, result.direction, result.device) == ("diet_rel", "en-de", "cpu")
    assert (result.options, result.subwords, result.threads) == ({"max-len-b": 5}, "bpe", 1)
    assert shell(result.training) == "fairseq-train data/toy.en-de/bin --save-dir checkpoints/run"
    assert (result.evaluation["beam"], result.evaluation["lenpen"]) == (10, 0.6)
    assert (result.evaluation["max-len-b"], "task" in result.evaluation) == (5, False)
    assert str(here) not in Path("results/toy.en-de.jsonl").read_text(encoding="utf-8")
    assert result.checkpoint_sha256 == sha256(folder / "run/checkpoint_best.pt")
    assert (result.length_penalty, result.averaged, result.train_tokens) == ("fairseq", 1, 840)
    words = sum(len(line.split()) for line in (Path("results") / result.hypotheses).open())
    rate = result.sentences_per_second * words / 13
    assert result.words_per_second == pytest.approx(rate, abs=0.01)
    before = changed()
    assert main(command) == 0
    assert "decoding" not in capfd.readouterr().err
    assert changed() == before

    again = ["verify", "results/toy.en-de.jsonl", "--references"]
    assert main([*again, f"{DATA}/raw/test.de"]) == 0
    assert main([*again, f"{DATA}/raw/test.en"]) == 2


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


def test_the_other_direction_has_its_own_test_set(here: Path, capsys: Captured) -> None:
    given = ["--length-penalty", "gnmt", "--max-len-b", "5", "--int8", "--results", "both"]
    assert main(["evaluate", DATA, "back", *given]) == 0
    (result,) = rows("both")
    scores = f"BLEU {result.bleu:.2f} nrefs:1"
    assert scores in capsys.readouterr().out
    assert (result.direction, result.length_penalty) == ("de-en", "gnmt")
    assert (result.test_set, result.sentences) == ("toy.en-de test1", 11)
    assert result.references_sha256 == sha256(Path(DATA, "raw", "test1.en"))
    mark = "536dae3f"  # of --max-len-b 5 --int8
    assert result.hypotheses.endswith(
        f".5.subset-test1.length_penalty-gnmt.direction-de-en.options-{mark}.hyp.txt"
    )
    pair = {"source-lang": "de", "target-lang": "en"}
    assert result.options == {"max-len-b": 5, "int8": True}
    own = {"task": "diet_translation", "length-penalty": "gnmt", "int8": True, **pair}
    assert own.items() <= result.evaluation.items()
    assert list(Path("back", "decoded").glob("checkpoint_best.pt.test1.*"))


def test_where_there_is_one_test_set_it_serves_both_directions(tmp_path: Path) -> None:
    (tmp_path / "test.cs-en.cs.idx").touch()
    assert [subset_of(tmp_path, pair) for pair in (("en", "cs"), ("cs", "en"))] == ["test"] * 2
    (tmp_path / "test1.cs-en.cs.idx").touch()
    assert subset_of(tmp_path, ("en", "cs")) == "test1"


def test_any_pair_of_text_files(here: Path) -> None:
    """Prepared as the test set was: the sentences of the test set have its scores, also with the
    line ends of Windows. A checkpoint of a sweep may have a comma in its name, which
    fairseq-preprocess would cut there.
    """
    run = str(Path("run").rename("diet_rel.encoder,decoder.1"))
    for lang in ("en", "de"):
        text = Path(DATA, "raw", f"test.{lang}").read_bytes()
        (here / f"mine.{lang}").write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
        (here / f"longer.{lang}").write_bytes(text + b"\n")
    given = ["--beam", "2", "--max-len-b", "5"]
    assert main(["evaluate", DATA, run, *given]) == 0

    def evaluated(source: str, reference: str, *name: str) -> int:
        texts = ["--source", source, "--reference", reference, *name]
        return main(["evaluate", DATA, f"{run}/checkpoint_best.pt", *texts, *given])

    assert evaluated("mine.en", "mine.de") == 0
    assert evaluated("longer.en", "longer.de") == 0
    assert evaluated("mine.en", f"{DATA}/raw/test.en") == 2  # another reference
    assert evaluated("mine.en", f"{DATA}/raw/test.en", "--test-set-name", "copies") == 0
    whole, own, longer, copies = rows()
    assert (longer.sentences, longer.bleu <= own.bleu) == (own.sentences + 1, True)
    assert (copies.test_set, copies.hypotheses_sha256) == ("copies", own.hypotheses_sha256)
    assert (own.bleu, own.chrf, own.sentences) == (whole.bleu, whole.chrf, whole.sentences)
    assert own.hypotheses_sha256 == whole.hypotheses_sha256
    assert own.references_sha256 == sha256(here / "mine.de")
    assert (own.test_set, own.corpus) == ("mine.de", "toy.en-de")
    assert ".subset-mine-" in own.hypotheses


class StandIn:
    """Takes the place of fairseq-generate; ``end`` is called when it has printed hypotheses."""

    calls = 0

    def __call__(self, cfg: Any, output: TextIO) -> None:
        self.calls += 1
        for number in range(13):
            print(f"H-{number}\t-0.5\tein Hund", file=output)
        self.end()
        logging.getLogger("fairseq_cli.generate").info(
            "Translated 13 sentences (39 tokens) in 1.0s (13.00 sentences/s, 39.00 tokens/s)"
        )

    def end(self) -> None:
        pass


@pytest.fixture
def stand_in(here: Path, monkeypatch: pytest.MonkeyPatch, runner: Runner) -> StandIn:
    def preprocess(words: list[str], to: Path, log: Path) -> None:
        runner("preprocess", *words, "--destdir", str(to), cwd=here).ok()

    monkeypatch.setattr(generation, "preprocess", preprocess)
    program = StandIn()
    monkeypatch.setattr("fairseq_cli.generate._main", program)
    return program


def test_a_test_set_of_sacrebleu(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["red dog"] * 13, ["ein Hund"] * 13
    with monkeypatch.context() as patched:
        given = {("wmt14/full", "en-de"): texts}
        patched.setattr(sets, "sentences", lambda name, pair: given[name, pair])
        assert main(["evaluate", DATA, "run", "--test-set", "wmt14/full"]) == 0
    (row,) = rows()
    assert (row.test_set, row.sentences, row.bleu, row.chrf) == ("wmt14/full", 13, 0.0, 100.0)
    assert row.hypotheses == "toy.en-de/diet_rel_tiny.5.subset-wmt14_full.hyp.txt"


@pytest.mark.parametrize("cleaned", [True, False])
def test_source_text_is_normalized_where_that_of_training_was(
    stand_in: StandIn, cleaned: bool
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


def test_normalized_lines_of_the_data_are_in_the_row(here: Path) -> None:
    data = here / "own"
    shutil.copytree(Path(DATA).resolve(), data)
    counts = {"valid": 0, "test": 3, "test1": 4}
    lines = [f"source lines mended\t{split}\t{count}\n" for split, count in counts.items()]
    text = "".join(["pairs\tread\t9\n", *lines, "rules\tversion\t1\n"])
    (data / "clean.tsv").write_text(text, encoding="utf-8")
    mended = {
        ("test", "en", "de"): "3 lines, rules 1",
        ("test", "de", "en"): "",  # this side is as it was
        ("test1", "de", "en"): "4 lines, rules 1",
        ("test1", "en", "de"): "",
        ("valid", "en", "de"): "",
    }
    for (subset, *pair), expected in mended.items():
        assert of_data(data / "bin", (pair[0], pair[1]), subset).mended == expected


def test_a_decoding_is_known_by_content(stand_in: StandIn) -> None:
    command = ["evaluate", DATA, "run"]
    assert main(command) == 0
    (done,) = Path("run/decoded").glob("checkpoint_best.pt.test.*.json")
    both = json.loads(done.read_text(encoding="utf-8"))
    both["facts"] |= {"date": "2020-02-02", "revision": "v0", "threads": 9}
    done.write_text(json.dumps(both), encoding="utf-8")
    assert main([*command, "--results", "again"]) == 0
    (row,) = rows("again")  # about the decoding, whenever it is scored
    assert (row.date, row.revision, row.threads) == ("2020-02-02", "v0", 9)
    assert stand_in.calls == 1
    # Another checkpoint in its place, with an older date.
    replace_checkpoint()
    os.utime("run/checkpoint_best.pt", (1, 1))
    assert main([*command, "--results", "other"]) == 0
    (row,) = rows("other")
    assert (row.updates, stand_in.calls) == (8, 2)
    assert row.checkpoint_sha256 == sha256(Path("run/checkpoint_best.pt"))
    # Other sentences under the same name.
    shutil.copytree(Path(DATA).resolve(), "changed/toy.en-de")
    index = Path("changed/toy.en-de/bin/test.en-de.en.bin")
    index.write_bytes(index.read_bytes()[::-1])
    assert main(["evaluate", "changed/toy.en-de", "run", "--results", "changed"]) == 0
    index.write_bytes(index.read_bytes()[::-1])
    assert main(["evaluate", "changed/toy.en-de", "run", "--results", "changed"]) == 0
    assert stand_in.calls == 4


def replace_checkpoint() -> None:
    """The same training one update later."""
    state = torch.load("run/checkpoint_best.pt", weights_only=False)
    state["optimizer_history"][-1]["num_updates"] += 1
    torch.save(state, "run/checkpoint_best.pt")


def test_a_checkpoint_that_is_replaced_while_it_is_decoded(
    stand_in: StandIn, capsys: Captured
) -> None:
    """The row would name one, and its hypotheses be of the other."""
    stand_in.end = replace_checkpoint  # type: ignore[method-assign]
    assert main(["evaluate", DATA, "run"]) == 2
    assert "run/checkpoint_best.pt: " in capsys.readouterr().err
    assert not Path("results").exists()


def test_another_training_is_refused_before_it_is_decoded(
    stand_in: StandIn, capsys: Captured
) -> None:
    assert main(["evaluate", DATA, "run"]) == 0
    (before,) = rows()
    replace_checkpoint()
    with open("run/command", "a", encoding="utf-8") as file:
        file.write(" --dropout 0.5")
    assert main(["evaluate", DATA, "run"]) == 2
    assert "--dropout" in capsys.readouterr().err
    assert (stand_in.calls, rows()) == (1, [before])
    assert main(["evaluate", DATA, "run", "--system", "mine"]) == 0
    assert stand_in.calls == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["data/toy.en-de/raw", "run"], "raw: "),
        ([DATA, "run", "--subset", "test9"], "'test9'"),
        (["data/plain.en-de", "run"], "data/plain.en-de/bin holds cs-en"),
        ([DATA, "run", "--source", "two", "--reference", "one"], "two: 2 "),
        *(
            ([DATA, "run", "--system", name], f"--system {name}: ")
            for name in ("../../escaped", "a b", ".hidden")
        ),
    ],
)
def test_wrong_uses(stand_in: StandIn, capsys: Captured, arguments: list[str], named: str) -> None:
    Path("one").write_text("a\n")
    Path("two").write_text("a\nb\n")
    assert main(["evaluate", *arguments]) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.strip().count("\n") == 0
    assert not Path("results").exists()


def test_one_evaluation_of_a_checkpoint_at_a_time(stand_in: StandIn, capsys: Captured) -> None:
    Path("run/decoded").mkdir()
    with held(Path("run/decoded")):
        assert main(["evaluate", DATA, "run"]) == 2
    assert "run/decoded: " in capsys.readouterr().err


def test_a_dry_run_prints_the_command(here: Path, capsys: Captured) -> None:
    before = changed()
    assert main(["evaluate", DATA, "run", "--dry-run"]) == 0
    assert "--path run/checkpoint_best.pt --beam 10" in capsys.readouterr().out
    assert changed() == before


def test_hypotheses_come_in_the_order_of_the_corpus() -> None:
    # Batches are sorted by length; of an n-best list the first is best; the second is empty;
    # U+2028 is no line end.
    output = (
        "S-2\tx\nT-2\ty\nH-2\t-0.5\tzwei\u2028 @-@ drei\nD-2\t-0.5\tH-9\nP-2\t-1 -2\n"
        "H-0\t-0.1\tnull\nH-0\t-0.9\tworse\nH-1\t-3\t\n"
    )
    assert read_output(output) == ["null", "", "zwei\u2028 @-@ drei"]


@pytest.mark.parametrize(
    ("output", "missing"), [("H-0\t-1\ta\nH-2\t-1\tc\n", 1), ("", 0), ("H-1\t-1\ta\n", 0)]
)
def test_an_incomplete_output_is_refused(output: str, missing: int) -> None:
    with pytest.raises(UserError, match=f"sentence {missing} "):
        read_output(output)


def test_options_that_the_command_sets_are_refused() -> None:
    refused = {"--max-len-b 5 --task x": "--task", "--gen-subset=valid": "--gen-subset"}
    refused |= {"-s de": "-s", "-tde": "-t", "--gen-sub=valid": "--gen-sub"}
    for words, option in refused.items():
        with pytest.raises(UserError, match=f"{option}[:;] "):
            check_options(words.split())
    check_options(shlex.split("--nbest 2 --max-len-b 5 --seed 3 --cpu --sampling-topk 5"))


def test_options_are_data_and_have_a_mark() -> None:
    options = ["--lm-path", "/home/a/models/lm.pt", "--model-overrides", "{'a': 1, 'b': [2]}"]
    search = Search(10, 0.6, "fairseq", 4096, (), options=options)
    assert search.as_data() == ({"lm-path": "data/models/lm.pt"}, {"a": 1, "b": "[2]"})
    others = ([], ["--nbest", "2"], ["--lm-path", "/b/models/lm.pt"], options)
    marks = [Search(10, 0.6, "fairseq", 4096, (), options=words).mark for words in others]
    assert list(map(len, marks)) == [0, 8, 8, 8]
    assert len({*marks}) == 4
    with pytest.raises(UserError, match=r"--model-overrides \{oops"):
        Search(10, 0.6, "fairseq", 4096, (), options=["--model-overrides={oops"]).as_data()


def test_other_ways_of_decoding_have_files_of_their_own() -> None:
    names = {
        "c/x_tiny.3.hyp.txt": {},
        "c/x_tiny.3.beam-5.lenpen-1.0.hyp.txt": {"beam": 5, "lenpen": 1.0},
        "c/x_tiny.3.length_penalty-gnmt.hyp.txt": {"length_penalty": "gnmt"},
        "c/x_tiny.3.direction-en-de.hyp.txt": {"direction": "en-de"},
        "c/x_tiny.3.options-01234567.hyp.txt": {"options": "01234567"},
    }
    for name, changes in names.items():
        how: dict[str, Any] = {**USUAL, **changes}
        assert hypotheses_name("c", "x_tiny", 3, **how) == name
