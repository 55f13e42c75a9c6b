"""What a search may be told beside the options of diet-mt evaluate."""

from __future__ import annotations

import pytest
from fairseq.options import get_generation_parser

from diet_mt.errors import UserError
from diet_mt.evaluation.generation_options import REFUSED, Search, as_text, check_options


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


def test_options_have_a_text_and_a_mark() -> None:
    options = ["--lm-path", "/home/a/models/lm.pt", "--model-overrides", "{'a': 1}"]
    text = "--lm-path data/models/lm.pt --model-overrides '{'\"'\"'a'\"'\"': 1}'"
    assert as_text(options) == text
    others = ([], ["--nbest", "2"], ["--lm-path", "/b/models/lm.pt"], options)
    marks = [Search(10, 0.6, "fairseq", 4096, (), options=words).mark for words in others]
    assert list(map(len, marks)) == [0, 8, 8, 8]
    assert len({*marks}) == 4
