"""Which errors become one line, and what the interpreter's hook then prints."""

from __future__ import annotations

import sys

import pytest

from diet_mt.errors import UserError
from diet_mt.fairseq_patches import one_line_errors
from diet_mt.fairseq_patches.one_line_errors import one_line


def raised(error: BaseException, *, while_handling: BaseException, cause: bool) -> BaseException:
    """``error`` as Python chains it to another."""
    try:
        try:
            raise while_handling
        except BaseException as first:
            if cause:
                raise error from first
            raise error  # noqa: B904
    except BaseException as last:
        return last


def test_a_users_error_is_its_own_line() -> None:
    assert one_line(UserError("--position-rank 0:\n   must be\tat least 1")) == (
        "--position-rank 0: must be at least 1"
    )
    assert issubclass(UserError, ValueError)  # for whoever uses the classes from Python


@pytest.mark.parametrize("cause", [True, False])
def test_a_users_error_is_found_under_what_fairseq_wraps_around_it(cause: bool) -> None:
    outer = Exception("Cannot load model parameters; please ensure that the architectures match.")
    error = raised(outer, while_handling=UserError("another encoding"), cause=cause)
    assert one_line(error) == "another encoding"


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("Dataset not found: tset (data/bin)", ["tset", "data/bin"]),
        ("Model file not found: x.pt", ["x.pt", "--path"]),
        ("Size of sample #3 is invalid (=(np.int64(60), 0)) since max_positions=(40, 36), skip "
         "this example with --skip-invalid-size-inputs-valid-test",
         ["#3", "(60, 0)", "(40, 36)", "--skip-invalid-size-inputs-valid-test"]),
        ("Size of sample #np.int64(3) is invalid (=np.int64(60)) since max_positions=40, skip x",
         ["#3", " 60 ", " 40 ", "--max-source-positions"]),
        ("Sentences lengths should not exceed max_tokens=9", ["9", "--max-tokens"]),
        ("Duplicate word found when loading Dictionary: 'a'. Duplicate words can ...", ["'a'"]),
        ("--share-all-embeddings requires a joined dictionary", ["--share-all-embeddings"]),
        ("--finetune-from-model x.pt does not exist", ["--finetune-from-model x.pt"]),
        ("--sampling requires --nbest to be equal to --beam", ["--sampling", "--nbest"]),
        ("Must specify batch size either with --max-tokens or --batch-size", ["--max-tokens"]),
        ("Cannot use a fixed learning rate schedule with inverse_sqrt. Use x", ["inverse_sqrt"]),
        ("Cannot use a fixed learning rate schedule with tri-stage lr. Consider x", ["tri-stage"]),
        ("min_len cannot be larger than max_len, please adjust these!", ["--min-len"]),
        ("Criterion does not match; please reset the optimizer (--reset-optimizer). Old vs New",
         ["Old", "New", "--reset-optimizer"]),
        ("Cannot resume training due to dataloader mismatch, please ...", ["--reset-dataloader"]),
        ("Minimum loss scale reached (0.0001). Your loss is ...", ["0.0001"]),
        ("gradients are Nan/Inf", ["--clip-norm"]),
        ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has ...", ["2.50 GiB"]),
    ],
)  # fmt: skip
def test_fairseqs_message_becomes_a_line_with_its_data(message: str, data: list[str]) -> None:
    line = one_line(Exception(message))
    assert line is not None
    assert [each for each in data if each not in line] == []
    assert "np." not in line


@pytest.mark.parametrize(
    ("error", "option"),
    [
        (KeyError(None), "--task"),
        (KeyError("bleu"), "--eval-bleu"),
        (FileNotFoundError(2, "No such file or directory", "@@ "), "--replace-unk"),
    ],
)
def test_an_error_without_its_option_names_it(error: Exception, option: str) -> None:
    line = one_line(error)
    assert line is not None
    assert option in line


def test_the_line_leaves_out_the_configuration() -> None:
    given = "--finetune-from-model and --restore-file (non-default value) can not be specified"
    line = one_line(ValueError(f"{given} together: {{'_name': None, 'common': 'x'}}"))
    assert line is not None
    assert "_name" not in line
    assert "--restore-file" in line


@pytest.mark.parametrize(("encoding", "hint"), [("ascii", "PYTHONIOENCODING"), ("utf-8", None)])
def test_a_terminal_that_cannot_print_a_translation(encoding: str, hint: str | None) -> None:
    line = one_line(UnicodeEncodeError(encoding, "\udcff", 0, 1, "why"))
    assert (line is None) if hint is None else (hint in str(line))


@pytest.mark.parametrize(
    "kind", [FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError]
)
def test_a_wrong_path_is_named(kind: type[OSError]) -> None:
    line = one_line(kind(2, "No such thing", "/data/bin"))
    assert line is not None
    assert "'/data/bin'; check the path" in line


def test_weights_that_do_not_fit_are_one_short_line() -> None:
    names = ", ".join(f'"encoder.layers.{n}.fc1.weight"' for n in range(100))
    text = (
        f"Error(s) in loading state_dict for Model:\n\tMissing key(s): {names}. \n\tsize mismatch"
    )
    outer = Exception("Cannot load model parameters from checkpoint x.pt")
    line = one_line(raised(outer, while_handling=RuntimeError(text), cause=False))
    assert line is not None
    assert line.startswith('the checkpoint does not fit the model: Missing key(s): "encoder.layers')
    assert "options and the dictionaries" in line
    assert len(line) < 400
    assert "\n" not in line


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyError("model"), RuntimeError("CUDA error"), KeyboardInterrupt()]
)
def test_other_errors_are_no_mistake_of_the_user(error: BaseException) -> None:
    assert one_line(error) is None


def run_as(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys, "argv", [program])


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """The hook, in a fairseq command, over one that only notes what it is called with."""
    noted: list[BaseException] = []
    run_as(monkeypatch, "/usr/bin/fairseq-train")
    own = one_line_errors.show_in_one_line(lambda kind, error, trace: noted.append(error))
    monkeypatch.setattr(sys, "excepthook", own)
    monkeypatch.delenv(one_line_errors.TRACEBACK_VARIABLE, raising=False)
    return noted


def call_hook(error: BaseException) -> None:
    sys.excepthook(type(error), error, error.__traceback__)


def test_the_hook_prints_the_line_alone(
    hook: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    call_hook(UserError("the rank is 0"))
    assert capsys.readouterr() == ("", "error: the rank is 0\n")
    assert hook == []


def test_the_hook_adds_the_traceback_where_asked(
    hook: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DIET_MT_TRACEBACK", "1")
    error = UserError("the rank is 0")
    call_hook(error)
    assert hook == [error]
    assert capsys.readouterr().err == "error: the rank is 0\n"


def test_the_hook_leaves_other_errors_to_the_one_before(
    hook: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    error = IndexError("a defect")
    call_hook(error)
    assert hook == [error]
    assert capsys.readouterr() == ("", "")


def test_a_program_that_only_imports_the_package_keeps_its_tracebacks(
    hook: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_as(monkeypatch, "my_translator.py")
    error = FileNotFoundError(2, "No such file or directory", "nosuch.txt")
    call_hook(error)
    assert hook == [error]
    assert capsys.readouterr().err == ""
