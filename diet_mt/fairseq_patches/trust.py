"""Restrictions on the configuration of a checkpoint and on archives (see docs/security.md).

A configuration may name trusted parts of fairseq, files in the folders of the checkpoint and the
data, a model of the size of the weights, and options that are text, numbers or literals.
"""

from __future__ import annotations

import ast
import atexit
import math
import os
import re
import shlex
import shutil
import tarfile
import tempfile
import zlib
from argparse import Namespace
from collections import OrderedDict
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Sequence, Sized, Tuple

import yaml
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf, open_dict
from torch import Tensor

from ..models.signature import OPTIONS
from ..system.errors import UserError, printable

# Environment variable: names of further parts that the user trusts, separated by commas.
VARIABLE = "DIET_MT_ALLOW"
TRUSTED: Mapping[str, Sequence[str]] = yaml.safe_load(
    Path(__file__).with_name("trusted.yaml").read_text(encoding="utf-8")
)
_MOST_OPTIONS, _LONGEST_OPTION, _MOST_POSITIONS = 20_000, 100_000, 1_000_000
_PLAIN = (str, int, float, bool, type(None))
# hydra parses names of parts, and would read some text as a table of options.
_NAME = re.compile(r"[\w-]+")
# Characters that move the cursor or change the writing direction; omegaconf resolves "${".
_NO_OPTION = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|[$][{]")

# Options that name files, files of training only, and languages, which become part of a path.
_FILE = re.compile(
    "(^|_)(path|file|folder|codes|merges|vocab|json|dict|dictionary)(_|$)"
    "|sentencepiece_model|replace_unk|weights_from|pretrained.*checkpoint"
)
_OF_TRAINING = re.compile("embed_path$|^extra_data$|offline_shard_ratio$")
_LANGUAGES = re.compile("(lang|langs|lang_pairs)$")
# Files of GPT-2's bpe, allowed if the user selects it, not if only the checkpoint does.
_OF_FAIRSEQ = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/"
# Options of a checkpoint's bpe whose default is downloaded, and local files to use instead.
_DOWNLOADED: Mapping[Any, Mapping[str, str]] = {
    "bert": {"bpe_vocab_file": "vocab.txt"},
    "gpt2": {"gpt2_encoder_json": "encoder.json", "gpt2_vocab_bpe": "vocab.bpe"},
}


def _table(config: Any) -> Dict[Any, Any]:
    """The options of a Namespace, dictionary or omegaconf object, unresolved."""
    if OmegaConf.is_config(config):
        config = OmegaConf.to_container(config, resolve=False)
    config = vars(config) if isinstance(config, Namespace) else config
    return dict(config) if isinstance(config, Mapping) else {}


def _section(state: Mapping[str, Any], name: str) -> Any:
    cfg = state.get("cfg") or {}
    return cfg[name] if name in cfg else None  # noqa: SIM401 (omegaconf 2.0's get is an error)


def attach_options(state: Dict[str, Any]) -> None:
    """Stores the options of a model with its weights, because fairseq passes it only these."""
    weights = state.get("model")
    if isinstance(weights, dict):
        state["model"] = OrderedDict(weights)
        metadata = getattr(weights, "_metadata", None)
        options = _table(state.get("args") or _section(state, "model"))
        own = metadata if isinstance(metadata, dict) else {}
        state["model"]._metadata = {**own, OPTIONS: options}


def check_options(state: Any) -> None:
    """Raises UserError for options other than numbers and plain text, and for too many."""
    cfg = (state.get("cfg") or {}) if isinstance(state, dict) else None
    if not isinstance(cfg, dict):
        raise UserError("not a checkpoint of fairseq-train: it has no table of options")
    for count, option in enumerate(_leaves((cfg, state.get("args")))):
        text = option if isinstance(option, str) else ""
        wrong = type(option) not in _PLAIN or _NO_OPTION.search(text)
        if wrong or count == _MOST_OPTIONS or len(text) > _LONGEST_OPTION:
            raise UserError(
                f"untrusted configuration ({str(option)[:60]!r} as option {count}): not a number "
                "or text without interpolations ${...} and control characters, or too large"
            )


def _leaves(value: Any) -> Iterator[Any]:
    """The names and values in a configuration, nested ones included."""
    value = vars(value) if isinstance(value, Namespace) else value
    value = [*value.items()] if isinstance(value, dict) else value
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def upgrade_state_dict(original: Callable[..., Any], state: Dict[str, Any]) -> Dict[str, Any]:
    """The state in fairseq's current form. Raises UserError for parts that are not trusted."""
    if not (isinstance(state, dict) and (state.get("cfg") or state.get("args"))):
        raise UserError("not a checkpoint of fairseq-train: it has no configuration")
    for part, name in names_in(state.get("args"), state.get("cfg")):
        if not is_trusted(part, name):
            raise UserError(f"untrusted {part} {name}; set {VARIABLE}={name} to load it anyway")
    options: Any
    for options in (state.get("args"), _section(state, "criterion")):
        if getattr(options, "save_predictions", None):  # sentence_ranking would write this file
            options.save_predictions = None
    upgraded: Dict[str, Any] = original(state)
    return upgraded


def names_in(*configs: Any) -> Iterator[Tuple[str, str]]:
    """(part, name) for every key of configurations, and of nested ones, that fairseq reads."""
    for key, value in (item for config in configs for item in _table(config).items()):
        part = "model" if key == "arch" else key
        options = _table(value)
        is_part = part in TRUSTED or part in REGISTRIES
        if is_part and options:
            name = options.pop("_name", None)
            # Without _name, fairseq reads arch or part (below), or takes the only key as the name.
            unnamed = () if options.keys() & {"arch", part} else options
            yield from ((part, str(each)) for each in ([name] if name else unnamed))
        elif is_part and value not in (None, "", {}):
            yield part, str(value)
        yield from names_in(options)


def is_trusted(part: str, name: str) -> bool:
    """Whether a part is reviewed, allowed by the user, or from another package than fairseq."""
    if part not in TRUSTED:  # harmless, or set by the command line
        return _NAME.fullmatch(name) is not None
    known = ARCH_MODEL_NAME_REGISTRY.get(name, name) if part == "model" else name
    parts = {"model": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}
    owner = parts[part].get(known)
    own = owner is not None and owner.__module__.partition(".")[0] != "fairseq"
    return own or known in TRUSTED[part] or name in os.environ.get(VARIABLE, "").split(",")


def confine(state: Mapping[str, Any], folder: str, given: Mapping[str, Any]) -> None:
    """Restricts files named in options to ``folder``, of the checkpoint, and the data folders.

    ``given``: options of the user, which are not restricted, such as ``data``.
    """
    folders = [folder, *str(given.get("data") or folder).split(os.pathsep)]
    sections = ("model", "task", "bpe", "tokenizer", "generation")
    for options in (state.get("args"), *(_section(state, name) for name in sections)):
        for table in _tables(options):
            for name, value in _files(table):
                if name in given or ("bpe" in given and value.startswith(_OF_FAIRSEQ)):
                    continue
                _set(table, name, None if _OF_TRAINING.search(name) else _inside(value, folders))
    if "bpe" in given:
        return
    if isinstance(_section(state, "bpe"), str):
        _set(state["cfg"], "bpe", {"_name": state["cfg"]["bpe"]})
    for options in (state.get("args"), _section(state, "bpe")):
        table = _table(options)
        for key in ("_name", "bpe"):
            for name, file in _DOWNLOADED.get(table.get(key), {}).items():
                if not table.get(name):
                    _set(options, name, os.path.join(folder, file))


def _tables(options: Any) -> Iterator[Any]:
    """Options and the tables of options nested in them, such as those of a stack."""
    yield options
    for name, value in _table(options).items():
        if isinstance(value, (dict, Namespace)):
            yield from _tables(_entries(options)[name])


def _entries(options: Any) -> Any:
    return vars(options) if isinstance(options, Namespace) else options


def _set(options: Any, name: str, value: Any) -> None:
    with open_dict(options) if OmegaConf.is_config(options) else nullcontext():
        _entries(options)[name] = value


def _files(options: Any) -> Iterator[Tuple[str, str]]:
    """Names and values of options that name a file or an address."""
    for key, value in _table(options).items():
        name = str(key)
        if _LANGUAGES.search(name) and "/" in str(value):
            raise UserError(f"untrusted configuration, {name} {value}: not a language")
        of_training = value and _OF_TRAINING.search(name)
        is_text = isinstance(value, str) and value not in ("", "???")
        if of_training or (is_text and (_FILE.search(name) or "://" in value)):
            yield name, str(value)


def _inside(value: str, folders: Sequence[str]) -> str:
    for folder in map(os.path.abspath, folders):
        for name in (value, os.path.basename(value)):
            path = os.path.abspath(os.path.join(folder, name))
            if os.path.exists(path) and os.path.commonpath([path, folder]) == folder:
                return path
    return os.path.join(folders[0], os.path.basename(value))


def check_size(state: Mapping[str, Any]) -> None:
    """Raises UserError for options of a model larger than its weights, slow or too big to build."""
    options = _table(state.get("args") or _section(state, "model"))
    weights = [each for each in state["model"].values() if isinstance(each, Tensor)]
    # A checkpoint without weights provides only options, of a model that must be buildable.
    total = sum(each.numel() for each in weights) if weights else 10**9
    most_layers = len(weights) or 100
    lengths = []
    for side, text in (("encoder", "source"), ("decoder", "target")):
        stack = options.get(side)
        # Each under every name that fairseq accepts.
        layers, width, inner = (
            max(
                _number(_table(table).get(key))
                for table, key in ((options, f"{side}_{name}"), (options, name), (stack, name))
            )
            for name in ("layers", "embed_dim", "ffn_embed_dim")
        )
        longest = max(_number(options.get(f"max_{name}positions")) for name in (f"{text}_", ""))
        too_large = max(layers * width * inner, width) > total or layers > most_layers
        if too_large or longest > _MOST_POSITIONS:
            raise UserError(f"its options are of a larger {side} than its weights")
        lengths.append(longest or 1)
    vectors = max(_number(options.get(f"position_{name}")) for name in ("clip", "buckets"))
    width = max(_number(options.get(name)) for name in ("position_rank", "linformer_k"))
    if max(vectors, width * min(lengths)) > total:
        raise UserError("its options are of larger tables of positions than its weights")


def _number(value: Any) -> int:
    """The number in an option, also in text; the length of a list of layers; 0 if not set."""
    if value in (None, "???"):
        return 0
    value = literal(value) if isinstance(value, str) else value
    return len(value) if isinstance(value, (list, tuple)) else int(value)


def build_index(original: Callable[..., Any], dataset: Any, path: str) -> Any:
    """The index of a FASTA file; fairseq makes the path a part of a shell command."""
    if shlex.quote(path) != path:
        raise UserError(f"{path!r}: rename the FASTA file, a shell would run its name")
    return original(dataset, path)


# Every module of fairseq 0.12.2 and fairseq-fixed 0.12.3.1 that calls eval, below "fairseq.".
EVALUATING = (
    *("utils", "criterions.ctc", "data.audio.raw_audio_dataset", "data.codedataset"),
    *("models.fconv", "models.fconv_lm", "models.fconv_self_att", "models.hubert.hubert"),
    *("models.lightconv_lm", "models.speech_to_text.s2t_wav_transformer", "models.transformer_lm"),
    *("models.wav2vec.wav2vec", "models.wav2vec.wav2vec2"),
    *("optim.adafactor", "optim.adam", "optim.adamax", "optim.cpu_adam", "optim.fused_lamb"),
)
_LONGEST_LITERAL = 10_000  # characters of an option, and items of its value


def literal(text: Any) -> Any:
    """The value of a literal, with sums and products as in fairseq's ``[(512, 3)] * 20``.

    Raises :class:`UserError` for other text, TypeError for other types.
    """
    if not isinstance(text, str):
        raise TypeError("an option must be a string")  # as eval; fairseq catches it
    try:
        if len(text) > _LONGEST_LITERAL:
            raise ValueError("too long")
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, TypeError, SyntaxError, ArithmeticError, MemoryError, RecursionError):
        raise UserError(
            f"option {printable(text, 60)!r}: not a literal, and no code is run; do not trust a "
            "checkpoint that has it"
        ) from None


def _value(node: ast.expr) -> Any:
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult))):
        return ast.literal_eval(node)
    left, right = _value(node.left), _value(node.right)
    joins = isinstance(node.op, ast.Add)
    sizes = [len(side) if isinstance(side, Sized) else side for side in (left, right)]
    if sizes != [left, right] and (sum(sizes) if joins else math.prod(sizes)) > _LONGEST_LITERAL:
        raise ValueError("too long")
    return left + right if joins else left * right


def from_pretrained(
    original: Callable[..., Any],
    path: Any,
    checkpoint_file: str = "model.pt",
    *args: Any,
    **kwargs: Any,
) -> Any:
    """fairseq's ``from_pretrained``, which also accepts the path of a checkpoint as ``path``."""
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(path, str) and os.path.isfile(path) and not tarfile.is_tarfile(path):
        path, checkpoint_file = os.path.split(os.path.abspath(path))
    return original(path, checkpoint_file, *args, **kwargs)


def load_archive_file(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """``path`` if it is a folder; for an archive, a folder with its files, removed at exit.

    Raises :class:`UserError` for anything else: nothing is downloaded.
    """
    if os.path.isfile(path):
        return _unpacked(path)
    if not os.path.isdir(path):
        raise UserError(f"{path}: no such folder or file; download it yourself and give the file")
    return original(path, *args, **kwargs)


def _unpacked(archive: str) -> str:
    folder = tempfile.mkdtemp(prefix="diet_mt.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter=_plain)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UserError(
            f"{archive}: not a tar archive of plain files ({error}); if you trust it, unpack it "
            "and give the folder"
        ) from None
    inside = os.listdir(folder)
    only = os.path.join(folder, inside[0]) if len(inside) == 1 else folder
    return only if os.path.isdir(only) else folder


def _plain(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """tarfile's filter ``data`` that also raises for links, devices and absolute names."""
    if os.path.isabs(member.name) or not (member.isfile() or member.isdir()):
        raise tarfile.SpecialFileError(member)
    return tarfile.data_filter(member, folder)
