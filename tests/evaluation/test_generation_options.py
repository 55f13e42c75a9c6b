"""What a search may be told beside the settings of evaluate.sh."""

from __future__ import annotations

import pytest
from fairseq.options import get_generation_parser

from diet_mt.errors import UserError
from diet_mt.evaluation.generation_options import OWN, as_text, mark_of, refuse_own


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("--max-len-b 5 --beam 1", "--beam: set BEAM;"),
        ("--beam=1", "--beam: set BEAM;"),
        ("--bea 1", "--bea: set BEAM;"),
        ("--lenpen 3", "set LENPEN;"),
        ("--lenpen -1", "set LENPEN;"),
        ("--length-penalty gnmt", "set LENGTH_PENALTY;"),
        ("--task translation", "set LENGTH_PENALTY, which"),
        ("--gen-sub=valid", "--gen-sub: set SUBSET;"),
        ("--path other.pt", "set CHECKPOINT;"),
        ("--max-tokens 10", "set MAX_TOKENS;"),
        ("-s de", "give the checkpoint of that direction;"),
        ("-tde", "give the checkpoint of that direction;"),
        ("--target-lang de", "give the checkpoint of that direction;"),
    ],
)
def test_what_the_script_sets_is_refused(words: str, instead: str) -> None:
    with pytest.raises(UserError) as caught:
        refuse_own(words.split())
    assert instead in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_other_option_of_fairseq_is() -> None:
    options = {
        option
        for action in get_generation_parser()._actions
        for option in action.option_strings
        if option not in OWN
    }
    assert {"--nbest", "--max-len-b", "--seed", "--cpu", "--sampling-topk"} <= options
    for option in options:
        refuse_own([option, "-0.5", "beam=2"])


def test_options_have_a_text_and_a_mark() -> None:
    options = as_text(["--lm-path", "/home/a/models/lm.pt", "--model-overrides", "{'a': 1}"])
    assert options == "--lm-path data/models/lm.pt --model-overrides '{'\"'\"'a'\"'\"': 1}'"
    assert len(mark_of(options)) == 8
    assert mark_of(options) != mark_of("--nbest 2") == mark_of("--nbest 2")
    assert as_text([]) == mark_of("") == ""
