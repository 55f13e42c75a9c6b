"""The command ``diet-mt``: a table of commands, each a module of this folder."""

from __future__ import annotations

import argparse
import inspect
import io
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from .. import __version__
from ..command_line import Parser, run, unknown

# Name -> module of the package, or class of it, and what it does. Its docstring is the help; it has
# arguments(parser) and run(arguments), and imports what is heavy within run.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "prepare multi30k": ("cli.prepare.multi30k", "image captions, any pair of en, de, cs"),
    "prepare newstest": ("cli.prepare.newstest", "ten years of news test sets: en-de, en-cs"),
    "prepare office": ("cli.prepare.office", "LibreOffice's help and interface: en with de, cs"),
    "prepare mixed": ("cli.prepare.mixed", "captions, news and office as one: en-de, en-cs"),
    "prepare wmt18": ("cli.prepare.wmt18", "WMT18 news, millions of pairs: de-en, cs-en"),
    "prepare bitext": ("cli.prepare.bitext", "parallel text of your own, any two languages"),
    "prepare demo": ("cli.prepare.demo", "generated sentences in which word order matters"),
    "prepare mlm": ("cli.prepare.mlm", "plain text, for a masked language model"),
    "prepare glue": ("cli.prepare.glue", "a task of GLUE, or all of them"),
    "prepare xnli": ("cli.prepare.xnli", "XNLI, for zero-shot transfer"),
    "prepare qa": ("cli.prepare.qa", "SQuAD, XQuAD, MLQA, TyDi QA"),
    "train": ("cli.train", "train a translation model by a recipe"),
    "pretrain": ("cli.pretrain", "train an encoder as a masked language model"),
    "finetune": ("cli.finetune", "fine-tune a pretrained encoder on GLUE, XNLI or questions"),
    "evaluate": ("cli.evaluate", "decode a test set, score it with SacreBLEU, keep the result"),
    "compare": ("cli.compare", "paired bootstrap test of every two systems"),
    "lengths": ("cli.lengths", "scores by length of the sentence, and by place in it"),
    "leaderboard": ("cli.leaderboard", "results side by side: text, Markdown, pictures or a page"),
    "verify": ("cli.verify", "look again at data, checkpoints, kept translations, answers"),
    "sweep": ("cli.sweep", "run an experiment that is a file: prepare, all runs, the table"),
    "predict": ("cli.predict", "classify with a fine-tuned checkpoint: GLUE, XNLI"),
    "answer": ("cli.answer", "answer questions with a fine-tuned checkpoint"),
    "average": ("cli.average", "average the weights of several checkpoints"),
    "parity": ("cli.parity", "decode with our search and fairseq's, list the differences"),
    "figures": ("cli.figures", "what trained positions look like: the paper's figures"),
    "theorems": ("cli.theorems", "the paper's theorems, as numbers"),
    "bench speed": (
        "cli.bench:Speed",
        "training and decoding beside stock fairseq and CTranslate2",
    ),
    "bench memory": ("cli.bench:Memory", "peak memory over long sentence pairs"),
    "bench encoder": (
        "cli.bench:Encoder",
        "cost of each encoding in an encoder: the paper's table 1",
    ),
    "bench operators": ("cli.bench:Operators", "operators of a training step, without a GPU"),
    "bench parameters": ("cli.bench:Parameters", "parameters of encoders: the paper's table 6"),
    "bench curves": ("cli.bench:Curves", "validation loss or perplexity over the updates"),
    "completion": ("cli.completion", "completion of these commands for a shell"),
}
GROUPS = tuple(dict.fromkeys(name.split(" ")[0] for name in COMMANDS if " " in name))
_HELP = ("-h", "--help")


def listing(group: str = "") -> str:
    """The usage, and a line for each command; ``group``: those of one first word."""
    shown = {name: help for name, (_, help) in COMMANDS.items() if name.startswith(group)}
    width = max(map(len, shown))
    lines = [f"usage: diet-mt {f'{group} ' if group else ''}COMMAND ...", ""]
    lines += [f"  {name:{width}}  {help}" for name, help in shown.items()]
    lines += ["", "diet-mt COMMAND --help shows its options, diet-mt --version the version."]
    return "\n".join(lines)


def parser_of(name: str) -> Parser:
    """The arguments of a command; its function ``run`` is their default."""
    module, _, part = COMMANDS[name][0].partition(":")
    command = import_module(f"..{module}", __package__)
    command = getattr(command, part) if part else command
    parser = Parser(name, inspect.cleandoc(command.__doc__ or ""))
    command.arguments(parser)
    parser.set_defaults(run=command.run)
    return parser


def tree() -> argparse.ArgumentParser:
    """All commands as one parser, for completion."""
    root = argparse.ArgumentParser(prog="diet-mt")
    words = root.add_subparsers()
    groups = {}
    for name, (_, what) in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group and group not in groups:
            # Completion leaves out what has no help.
            groups[group] = words.add_parser(group, help=f"{group} COMMAND").add_subparsers()
        parent = groups.get(group, words)
        own = parser_of(name)
        parent.add_parser(last, parents=[own], add_help=False, help=what)
    return root


def _refuse(message: str) -> int:
    hint = "" if message.endswith("?") else "; see diet-mt --help"
    print(f"error: {message}{hint}", file=sys.stderr)
    return 2


def _run(name: str, words: list[str]) -> int:
    arguments = parser_of(name).parse_args(words)
    arguments.words = words  # as they were given, for records
    return run(lambda: arguments.run(arguments))


def main(argv: Sequence[str] | None = None) -> int:
    """The status of the command; SystemExit with it where argparse has ended it."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # names that are not UTF-8, stdout that is ASCII
        sys.stdout.reconfigure(errors="backslashreplace")
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
