"""Which errors become one line, with which data of theirs, and what the interpreter prints."""

from __future__ import annotations

import functools
import sys

import pytest

from diet_mt.fairseq_patches.error_lines import TRACEBACK_VARIABLE, excepthook, one_line
from diet_mt.system.errors import UserError

UNFIT = "Error(s) in loading state_dict for Model:\n\tMissing key(s): " + "fc1.weight, " * 100
# An error, and what its line must name.
LINES: list[tuple[BaseException, list[str]]] = [
    (UserError("--position-rank 0:\n   must be\tat least 1"), ["--position-rank 0: must be at"]),
    (RuntimeError(UNFIT), ["fc1.weight", "options", "dictionaries"]),
    (KeyError(None), ["--task"]),
    (KeyError("bleu"), ["--eval-bleu"]),
    (FileNotFoundError(2, "No such file or directory", "@@ "), ["--replace-unk"]),
    (UnicodeEncodeError("ascii", "\udcff", 0, 1, "why"), ["PYTHONIOENCODING"]),
    *(
        (kind(2, "No such thing", "/data/bin"), ["'/data/bin'"])
        for kind in (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
    ),
    *(
        (Exception(message), data)
        for message, data in {
            "Dataset not found: tset (data/bin)": ["tset", "data/bin"],
            "Model file not found: x.pt": ["x.pt", "--path"],
            "Size of sample #3 is invalid (=(np.int64(60), 0)) since max_positions=(40, 36), skip "
            "this example with --skip-invalid-size-inputs-valid-test": [
                *("#3", "(60, 0)", "(40, 36)", "--skip-invalid-size-inputs-valid-test"),
            ],
            "Size of sample #np.int64(3) is invalid (=np.int64(60)) since max_positions=40, skip x":
            ["#3", " 60 ", " 40 ", "--max-source-positions"],
            "Duplicate word found when loading Dictionary: 'a'. Duplicate words ...": ["'a'"],
            "--finetune-from-model and --restore-file (non-default value) can not be specified "
            "together: {'_name': None}": ["--restore-file"],
            "Cannot use a fixed learning rate schedule with inverse_sqrt. Use": ["inverse_sqrt"],
            "Criterion does not match; please reset the optimizer (--reset-optimizer). Old vs New":
            ["Old", "New", "--reset-optimizer"],
            "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has": ["2.50 GiB"],
        }.items()
    ),
]  # fmt: skip


@pytest.mark.parametrize(("error", "data"), LINES, ids=lambda value: str(value)[:40])
def test_a_line_has_the_data_of_the_error(error: BaseException, data: list[str]) -> None:
    line = one_line(error)
    assert line is not None
    assert [each for each in data if each not in line] == []
    assert not any(part in line for part in ("np.", "\n", "_name"))
    assert len(line) < 400


@pytest.mark.parametrize("link", ["__cause__", "__context__"])
def test_the_cause_of_an_error_of_fairseq_is_shown(link: str) -> None:
    error = Exception("Cannot load model parameters; please ensure that the architectures match.")
    setattr(error, link, UserError("another encoding"))
    assert one_line(error) == "another encoding"


BUGS = [ValueError("x"), KeyError("model"), RuntimeError("CUDA error"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", [*BUGS, UnicodeEncodeError("utf-8", "\udcff", 0, 1, "why")])
def test_other_errors_keep_their_traceback(error: BaseException) -> None:
    assert one_line(error) is None


@pytest.mark.parametrize(
    ("program", "variable", "error", "line", "traceback"),
    [
        ("/usr/bin/fairseq-train", "", UserError("the rank is 0"), True, False),
        ("/usr/bin/fairseq-train", "1", UserError("the rank is 0"), True, True),
        ("/usr/bin/fairseq-train", "", IndexError("a defect"), False, True),
        ("my_translator.py", "", UserError("the rank is 0"), False, True),
    ],
)
def test_what_is_printed(
    program: str,
    variable: str,
    error: Exception,
    line: bool,
    traceback: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[BaseException] = []
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.setenv(TRACEBACK_VARIABLE, variable)
    hook = functools.partial(excepthook, lambda kind, error, trace: shown.append(error))
    hook(type(error), error, None)
    assert capsys.readouterr() == ("", f"error: {error}\n" if line else "")
    assert shown == [error] * traceback
