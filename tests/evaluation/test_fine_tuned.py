"""What a fine-tuned checkpoint says of its encoding."""

from __future__ import annotations

import pytest

import diet_mt
from diet_mt.evaluation.fine_tuned import _own_rank, encoding_of
from diet_mt.evaluation.records import described


@pytest.mark.parametrize(
    ("arch", "rank", "said"),
    [
        ("roberta_diet_abs_base", 64, "64"),
        ("roberta_diet_abs_base", 128, None),  # that of the architecture
        ("roberta_diet_rel_base", None, None),
    ],
)
def test_the_rank_is_said_where_it_is_not_the_architectures(
    arch: str, rank: int | None, said: str | None
) -> None:
    diet_mt.register()
    text = described("some sharing=none", _own_rank({"_name": arch, "position_rank": rank}))
    name, options = encoding_of(text)
    assert (name, options.get("rank"), options["sharing"]) == ("some", said, "none")
