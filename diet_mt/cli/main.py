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

# Name -> module and class of the command, and its one-line summary. Modules are imported on use.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "prepare multi30k": ("cli.prepare:Multi30k", "image captions, any pair of en, de, cs"),
    "prepare newstest": ("cli.prepare:Newstest", "ten years of news test sets: en-de, en-cs"),
    "prepare office": ("cli.prepare:Office", "LibreOffice's help and interface: en-de, en-cs"),
    "prepare mixed": ("cli.prepare:Mixed", "captions, news and office combined: en-de, en-cs"),
    "prepare wmt18": ("cli.prepare:Wmt18", "WMT18 news, millions of sentence pairs: en-de, en-cs"),
    "prepare bitext": ("cli.prepare:Bitext", "your own parallel text, any language pair"),
    "prepare demo": ("cli.prepare:Demo", "synthetic sentences in which word order matters"),
    "prepare mlm": ("cli.prepare:Mlm", "plain text, for a masked language model"),
    "prepare glue": ("cli.prepare:Glue", "one GLUE task, or all of them"),
    "prepare xnli": ("cli.prepare:Xnli", "XNLI, for zero-shot transfer"),
    "prepare qa": ("cli.prepare:Qa", "SQuAD, XQuAD, MLQA, TyDi QA"),
    "train": ("cli.train:Train", "train a translation model by a recipe"),
    "pretrain": ("cli.train:Pretrain", "train an encoder as a masked language model"),
    "finetune": ("cli.train:Finetune", "fine-tune an encoder on GLUE, XNLI or question answering"),
    "evaluate": ("cli.evaluate:Evaluate", "decode a test set, score it with SacreBLEU, save a row"),
    "compare": ("cli.reports:Compare", "paired bootstrap tests between systems"),
    "lengths": ("cli.reports:Lengths", "BLEU by source length or by test set"),
    "leaderboard": ("cli.reports:Leaderboard", "results as tables, pictures or a web page"),
    "claims": ("cli.reports:Claims", "the paper's claims, decided by results; its figure 1"),
    "verify": ("cli.evaluate:Verify", "verify data, checkpoints and saved results"),
    "sweep": ("cli.sweep:Sweep", "run an experiment file: prepare data, train, report"),
    "predict": ("cli.evaluate:Predict", "classify with a fine-tuned checkpoint: GLUE, XNLI"),
    "answer": ("cli.evaluate:Answer", "answer questions with a fine-tuned checkpoint"),
    "average": ("cli.evaluate:Average", "average the weights of several checkpoints"),
    "export": ("cli.evaluate:Export", "a model for ONNX Runtime, torch.export or CTranslate2"),
    "figures": ("cli.reports:Figures", "the paper's figures for trained checkpoints"),
    "theorems": ("cli.reports:Theorems", "numerical checks of the paper's theorems"),
    "bench speed": (
        "bench.commands:Speed",
        "training and decoding, against stock fairseq and CTranslate2",
    ),
    "bench memory": ("bench.commands:Memory", "peak memory over long sentence pairs"),
    "bench encoder": ("bench.commands:Encoder", "cost of encodings in BERT: the paper's table 1"),
    "bench parameters": ("bench.commands:Parameters", "parameter counts: the paper's table 6"),
    "bench curves": ("cli.reports:Curves", "learning curves: validation loss or perplexity"),
    "completion": ("cli.main:Completion", "shell completion for bash or zsh"),
}
GROUPS = tuple(dict.fromkeys(name.split(" ")[0] for name in COMMANDS if " " in name))
_HELP = ("-h", "--help")


@dataclass(frozen=True, kw_only=True)
class Completion(Command):
    """Prints a shell completion script for the commands and options of diet-mt.

    eval "$(diet-mt completion bash)"                       in ~/.bashrc
    diet-mt completion zsh > ~/.zfunc/_diet-mt              a folder of $fpath
    """

    shell: str = argument("bash or zsh", choices=("bash", "zsh"), metavar="shell")

    def run(self) -> None:
        import shtab

        print(shtab.complete(tree(), shell=self.shell))


def listing(group: str = "") -> str:
    """The usage and the summaries of all commands, or of those of one ``group``."""
    shown = {name: help for name, (_, help) in COMMANDS.items() if name.startswith(group)}
    width = max(map(len, shown))
    lines = [f"usage: diet-mt {f'{group} ' if group else ''}COMMAND ...", ""]
    lines += [f"  {name:{width}}  {help}" for name, help in shown.items()]
    lines += ["", "Options of a command: diet-mt COMMAND --help. Version: diet-mt --version."]
    return "\n".join(lines)


def parser_of(name: str) -> Parser:
    """The argument parser of a command."""
    module, _, kind = COMMANDS[name][0].partition(":")
    return Parser(name, getattr(import_module(f"..{module}", __package__), kind))


def tree() -> argparse.ArgumentParser:
    """The parser of all commands, for shell completion."""
    root = argparse.ArgumentParser(prog="diet-mt")
    words = root.add_subparsers()
    groups = {}
    for name, (_, what) in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group and group not in groups:
            # shtab omits groups without help.
            groups[group] = words.add_parser(group, help=f"{group} COMMAND").add_subparsers()
        parent = groups.get(group, words)
        parent.add_parser(last, parents=[parser_of(name)], add_help=False, help=what)
    return root


def _refuse(message: str) -> int:
    hint = "" if message.endswith("?") else "; see diet-mt --help"
    print(f"error: {message}{hint}", file=sys.stderr)
    return 2


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status. Raises SystemExit for ``--help`` and for errors of argparse."""
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
            parser = parser_of(name)
            arguments = parser.parse_args(words[1:])
            return run(lambda: filled(parser.kind, arguments).run())
        except ModuleNotFoundError as error:
            if error.name != "fairseq":
                raise
            return _refuse(str(error))
    if first[0] == "-":
        return _refuse(unknown("option", first, (*_HELP, "--version")))
    return _refuse(unknown("command", name, (*COMMANDS, *GROUPS)))
