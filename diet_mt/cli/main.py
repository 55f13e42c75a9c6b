"""The command ``diet-mt``: a table of commands, each a dataclass of options with ``run``."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from .. import __version__
from ..system.options import Command, argument, run, unknown
from .parser import Parser, filled

# Name -> module and class, with its options and their help, and a summary. What is heavy is
# imported when it runs.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "prepare multi30k": ("cli.prepare:Multi30k", "image captions, any pair of en, de, cs"),
    "prepare newstest": ("cli.prepare:Newstest", "ten years of news test sets: en-de, en-cs"),
    "prepare office": ("cli.prepare:Office", "LibreOffice's help and interface: en with de, cs"),
    "prepare mixed": ("cli.prepare:Mixed", "captions, news and office as one: en-de, en-cs"),
    "prepare wmt18": ("cli.prepare:Wmt18", "WMT18 news, millions of pairs: de-en, cs-en"),
    "prepare bitext": ("cli.prepare:Bitext", "parallel text of your own, any two languages"),
    "prepare demo": ("cli.prepare:Demo", "generated sentences in which word order matters"),
    "prepare mlm": ("cli.prepare:Mlm", "plain text, for a masked language model"),
    "prepare glue": ("cli.prepare:Glue", "a task of GLUE, or all of them"),
    "prepare xnli": ("cli.prepare:Xnli", "XNLI, for zero-shot transfer"),
    "prepare qa": ("cli.prepare:Qa", "SQuAD, XQuAD, MLQA, TyDi QA"),
    "train": ("cli.train:Train", "train a translation model by a recipe"),
    "pretrain": ("cli.train:Pretrain", "train an encoder as a masked language model"),
    "finetune": ("cli.train:Finetune", "fine-tune an encoder on GLUE, XNLI or questions"),
    "evaluate": ("cli.evaluate:Evaluate", "decode a test set, score it with SacreBLEU, save a row"),
    "compare": ("cli.reports:Compare", "paired bootstrap test of every two systems"),
    "lengths": ("cli.reports:Lengths", "scores by sentence length and by position"),
    "leaderboard": ("cli.reports:Leaderboard", "tables, pictures or a page of results"),
    "verify": ("cli.evaluate:Verify", "check the integrity of data, checkpoints and saved results"),
    "sweep": ("cli.sweep:Sweep", "run an experiment of a file: data, all runs, the table"),
    "predict": ("cli.tasks:Predict", "classify with a fine-tuned checkpoint: GLUE, XNLI"),
    "answer": ("cli.tasks:Answer", "answer questions with a fine-tuned checkpoint"),
    "average": ("cli.evaluate:Average", "average the weights of several checkpoints"),
    "parity": (
        "cli.evaluate:Parity",
        "compare the hypotheses of our search and fairseq's",
    ),
    "figures": ("cli.figures:Figures", "trained positions: the paper's figures"),
    "theorems": ("cli.figures:Theorems", "the paper's theorems, as numbers"),
    "bench speed": (
        "bench.requests:Speed",
        "training and decoding: ours, stock fairseq, CTranslate2",
    ),
    "bench memory": ("bench.requests:Memory", "peak memory over long sentence pairs"),
    "bench encoder": ("bench.requests:Encoder", "cost of encodings in BERT: the paper's table 1"),
    "bench operators": ("bench.requests:Operators", "operators of a training step, without a GPU"),
    "bench parameters": ("bench.requests:Parameters", "parameters: the paper's table 6"),
    "bench curves": ("cli.reports:Curves", "validation loss or perplexity over the updates"),
    "completion": ("cli.main:Completion", "completion of these commands for a shell"),
}
GROUPS = tuple(dict.fromkeys(name.split(" ")[0] for name in COMMANDS if " " in name))
_HELP = ("-h", "--help")


@dataclass(frozen=True, kw_only=True)
class Completion(Command):
    """Completion of diet-mt for a shell: commands, options, values.

    eval "$(diet-mt completion bash)"                       in ~/.bashrc
    diet-mt completion zsh > ~/.zfunc/_diet-mt              a folder of $fpath
    """

    shell: str = argument("bash or zsh", choices=("bash", "zsh"), metavar="shell")

    def run(self) -> None:
        import shtab

        print(shtab.complete(tree(), shell=self.shell))


def listing(group: str = "") -> str:
    """The usage, and a line for each command. ``group``: only commands of this first word."""
    shown = {name: help for name, (_, help) in COMMANDS.items() if name.startswith(group)}
    width = max(map(len, shown))
    lines = [f"usage: diet-mt {f'{group} ' if group else ''}COMMAND ...", ""]
    lines += [f"  {name:{width}}  {help}" for name, help in shown.items()]
    lines += ["", "diet-mt COMMAND --help shows its options, diet-mt --version the version."]
    return "\n".join(lines)


def parser_of(name: str) -> Parser:
    """The arguments of a command."""
    module, _, kind = COMMANDS[name][0].partition(":")
    return Parser(name, getattr(import_module(f"..{module}", __package__), kind))


def tree() -> argparse.ArgumentParser:
    """All commands as one parser, for completion."""
    root = argparse.ArgumentParser(prog="diet-mt")
    words = root.add_subparsers()
    groups = {}
    for name, (_, what) in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group and group not in groups:
            # Completion leaves out groups without help.
            groups[group] = words.add_parser(group, help=f"{group} COMMAND").add_subparsers()
        parent = groups.get(group, words)
        parent.add_parser(last, parents=[parser_of(name)], add_help=False, help=what)
    return root


def _refuse(message: str) -> int:
    hint = "" if message.endswith("?") else "; see diet-mt --help"
    print(f"error: {message}{hint}", file=sys.stderr)
    return 2


def _run(name: str, words: list[str]) -> int:
    parser = parser_of(name)
    arguments = parser.parse_args(words)
    return run(lambda: filled(parser.kind, arguments).run())


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status; SystemExit with it for errors of argparse and --help."""
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
