"""The command ``diet-mt``: a table of commands, each a module that is loaded when it runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from .. import __version__
from ..command_line import Parser, run, unknown

# Name -> module of the package, and what it does. A module under cli/ has its help as docstring,
# arguments(parser) and run(arguments), and imports what is heavy within run.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "compare": (
        "evaluation.significance",
        "paired bootstrap test of each result against the baseline",
    ),
    "leaderboard": ("cli.leaderboard", "results side by side: text, Markdown or a page"),
    "verify": ("evaluation.rescore", "score the kept hypotheses again"),
    "predict": ("evaluation.predict", "classify with a fine-tuned checkpoint: GLUE, XNLI"),
    "answer": ("evaluation.answer", "answer questions with a fine-tuned checkpoint"),
    "average": ("evaluation.average", "average the weights of several checkpoints"),
    "parity": ("bench.search_parity", "decode with our search and fairseq's, list the differences"),
    "bench speed": ("bench.benchmark", "training, forward pass and decoding beside stock fairseq"),
    "bench encoder": ("bench.encoder_cost", "what each encoding costs an encoder"),
    "bench memory": ("bench.long_sequences", "peak memory over long sentence pairs"),
    "bench padding": ("bench.padding_memory", "what padding costs in memory"),
    "bench parameters": (
        "cli.bench_parameters",
        "sizes of encoders beside the paper's",
    ),
}
GROUPS = {name.split(" ")[0] for name in COMMANDS if " " in name}
_HELP = ("-h", "--help")


def listing(group: str = "") -> str:
    """The usage, and a line for each command; ``group``: those of one first word."""
    shown = {name: help for name, (_, help) in COMMANDS.items() if name.startswith(group)}
    width = max(map(len, shown))
    lines = [f"usage: diet-mt {f'{group} ' if group else ''}COMMAND ...", ""]
    lines += [f"  {name:{width}}  {help}" for name, help in shown.items()]
    lines += ["", "diet-mt COMMAND --help shows its options, diet-mt --version the version."]
    return "\n".join(lines)


def _refuse(message: str) -> int:
    hint = "" if message.endswith("?") else "; see diet-mt --help"
    print(f"error: {message}{hint}", file=sys.stderr)
    return 2


def _run(name: str, words: list[str]) -> int:
    command = import_module(f"..{COMMANDS[name][0]}", __package__)
    if not hasattr(command, "arguments"):
        return int(command.main(words))
    parser = Parser(name, command.__doc__)
    command.arguments(parser)
    arguments = parser.parse_args(words)
    arguments.words = words  # as they were given, for records
    return run(lambda: command.run(arguments))


def main(argv: Sequence[str] | None = None) -> int:
    """The status of the command; SystemExit with it where argparse has ended it."""
    words = list(sys.argv[1:] if argv is None else argv)
    group = words.pop(0) if words and words[0] in GROUPS else ""
    first = words[0] if words else ""
    if first in _HELP:
        print(listing(group))
        return 0
    if first == "--version" and not group:
        print(f"diet-mt {__version__}")
        return 0
    if not first:
        print(listing(group), file=sys.stderr)
        return 2
    name = f"{group} {first}".strip()
    if name in COMMANDS:
        try:
            return _run(name, words[1:])
        except ModuleNotFoundError as error:
            if error.name != "fairseq":
                raise
            return _refuse(str(error))
    if first[0] == "-":
        return _refuse(unknown("option", first, (*_HELP, "--version")))
    return _refuse(unknown("command", name, (*COMMANDS, *GROUPS)))


if __name__ == "__main__":
    sys.exit(main())
