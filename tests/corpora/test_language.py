"""Which language a line is in."""

from __future__ import annotations

import errno

import pytest

from diet_mt.corpora import language
from diet_mt.corpora.language import is_other, need_known
from diet_mt.errors import UserError

from .wmt18 import LANGS, sentences


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("other", LANGS)
def test_whole_sentences_are_told_apart(lang: str, other: str) -> None:
    for sentence in sentences(20, seed=1):
        assert is_other(sentence[other], lang, 0.9) == (lang != other)


def test_a_doubtful_line_is_left_alone() -> None:
    assert not is_other("Barack Obama, 4. 11. 2008, 21:00", "de", 0.9)
    assert not is_other("12345 67890 12345 67890 12345 67890 1234", "cs", 0.9)


def test_slovak_does_not_count_as_not_czech() -> None:
    assert not is_other("Mladý učiteľ číta dlhý list pred starou stanicou, lebo prší.", "cs", 0.9)


def test_no_room_for_the_model_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("py3langid.langid.LanguageIdentifier.from_model_file", full)
    with pytest.raises(UserError, match=r"cannot unpack its model there \(No space left"):
        language._identifier.__wrapped__()


def test_a_missing_identifier_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="py3langid is not installed; install it"):
        language._identifier.__wrapped__()


def test_unknown_codes_are_refused() -> None:
    need_known(("de", "cs", "en"))
    with pytest.raises(UserError, match=r"language xx: not known to py3langid; .*--certainty 2"):
        need_known(("de", "xx"))
