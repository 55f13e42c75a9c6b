"""The output of fairseq-generate, and the options that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairseq.options import get_generation_parser

from diet_mt.errors import UserError
from diet_mt.evaluation.generation import REFUSED, Search, check_options, read_output

LOG = "INFO: Translated 3 sentences (12 tokens) in 0.5s (6.00 sentences/s, 24.50 tokens/s)\n"


def decoded(tmp_path: Path, output: str, log: str = LOG) -> Any:
    (tmp_path / "out").write_text(output, encoding="utf-8", newline="\n")
    (tmp_path / "log").write_text(log, encoding="utf-8", newline="\n")
    return read_output(tmp_path / "out", tmp_path / "log")


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


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--max-len-b 5 --task translation", "--task: give --length-penalty, which"),
        ("--gen-subset=valid", "--gen-subset: give --subset"),
        ("--path other.pt", "--path: give the folder of the checkpoint"),
        ("-s de", "-s: give the checkpoint of that direction"),
        ("-tde", "-t: give the checkpoint of that direction"),
        ("--quiet", "--quiet: leave it out"),
        ("--gen-sub=valid", "unknown option --gen-sub; did you mean --gen-subset?"),
        ("--nbest two", "--nbest two: expected a whole number"),
    ],
)
def test_what_the_command_sets_and_what_is_not_there_is_refused(words: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        check_options(words.split())
    assert str(caught.value).startswith(complaint)


def test_other_options_of_fairseq_are_taken() -> None:
    words = "--nbest 2 --max-len-b 5 --seed 3 --cpu --sampling --sampling-topk 5"
    check_options(words.split())
    known = {name for action in get_generation_parser()._actions for name in action.option_strings}
    assert REFUSED.keys() <= known | {"-s", "-t", "--source-lang", "--target-lang"}


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
