"""A configuration that could run code, or open files elsewhere, is refused or confined."""

from __future__ import annotations

import importlib
import io
import os
import re
import shutil
import tarfile
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import fairseq
import pytest
import torch
from fairseq import checkpoint_utils, file_utils, hub_utils, utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import data_utils
from fairseq.data.encoders import BPE_REGISTRY, TOKENIZER_REGISTRY
from fairseq.models import MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from diet_mt.fairseq_patches import safe_load
from diet_mt.fairseq_patches.trust import (
    EVALUATING,
    TRUSTED,
    VARIABLE,
    confine,
    from_pretrained,
    is_trusted,
    literal,
    names_in,
)
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.system.errors import UserError

from ..checkpoints import state_of, write_checkpoint
from ..corpora.server import serving
from ..toy import build

pytestmark = [
    pytest.mark.hostile,
    # hydra (fairseq-fixed) says so for every configuration of fairseq.
    pytest.mark.filterwarnings("ignore:\\s*.config. is validated against:UserWarning"),
]

load = checkpoint_utils.load_checkpoint_to_cpu

# Parts that a checkpoint names

OURS: dict[str, Any] = {
    "model": {"_name": "diet_rel_tiny"},
    "task": {"_name": "translation", "data": "bin", "dataset_impl": "mmap"},
    "criterion": {"_name": "label_smoothed_cross_entropy"},
    "optimizer": {"_name": "adam"},
    "lr_scheduler": {"_name": "inverse_sqrt"},
    "bpe": None,
    "scoring": {"_name": "bleu"},
}
# Left out, for the reasons in docs/security.md.
SPEECH = ("speech", "audio", "s2", "wav2vec", "hubert", "tts", "text_to_speech", "unit", "tacotron")
OUT = {
    "model": "transformer_from_pretrained_xlm roberta_enc_dec fconv_self_att hf_gpt2 "
    "model_parallel_transformer model_parallel_transformer_lm model_parallel_roberta "
    "pipeline_parallel_transformer dummy_model transformer_ulm CodeHiFiGANVocoder convtransformer "
    "fastspeech2 xm_transformer",
    "task": "simul_text_to_text nlu_finetuning dummy_lm dummy_masked_lm dummy_mt",
    "criterion": "ctc composite_loss vocab_parallel_cross_entropy fastspeech2",
}
# All of fairseq's are harmless, and none is refused.
HARMLESS = {
    "bpe": "byte_bpe bytes characters fastbpe gpt2 bert hf_byte_bpe sentencepiece subword_nmt",
    "tokenizer": "moses nltk space",
}
REGISTERED = {"model": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}
REGISTERED |= {"bpe": BPE_REGISTRY, "tokenizer": TOKENIZER_REGISTRY}


def saved(path: Path, **changes: Any) -> str:
    """A checkpoint without weights; ``args`` among the changes: in fairseq's old form."""
    state = {**state_of(), "cfg": {**OURS, **changes}}
    if "args" in changes:
        state |= {"args": Namespace(**changes["args"]), "cfg": None}
    torch.save(state, path)
    return str(path)


@pytest.mark.parametrize("part", REGISTERED)
def test_every_part_of_fairseq_was_read(part: str) -> None:
    read = {*TRUSTED.get(part, ()), *OUT.get(part, "").split(), *HARMLESS.get(part, "").split()}
    for name, owner in REGISTERED[part].items():
        speech = any(word in name for word in SPEECH)
        assert name in read or speech or not owner.__module__.startswith("fairseq."), name


def test_names_of_our_trainings_are_trusted(tmp_path: Path) -> None:
    assert load(saved(tmp_path / "a.pt"))["cfg"].model._name == "diet_rel_tiny"
    for arch in ("transformer_iwslt_de_en", "lstm_luong_wmt_en_de", "roberta_diet_abs_tiny"):
        assert is_trusted("model", arch)
    for part, name in (*names_in(OURS), ("criterion", "extractive_qa")):
        assert is_trusted(part, name), (part, name)
    # fairseq's old form has all options of the training in each section.
    old = Namespace(arch="transformer", task="translation", criterion="cross_entropy", bpe=None)
    whole = {"model": old, "task": old, "criterion": old, "bpe": {"_name": None}}
    assert load(saved(tmp_path / "e.pt", **whole))


@pytest.mark.parametrize(
    ("part", "name"),
    [
        *(("model", name) for name in ("wav2vec2", "roberta_enc_dec", "no_such_model")),
        *(("task", name) for name in ("audio_pretraining", "speech_to_text", "no_such_task")),
        *(("criterion", name) for name in ("ctc", "composite_loss", "no_such_criterion")),
    ],
)
def test_other_names_are_refused_unless_the_user_allows_them(
    part: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path / "b.pt", **{part: {"_name": name}})
    with pytest.raises(UserError, match=rf"b\.pt: .*{part} {name};.* {VARIABLE}={name}"):
        load(file)
    old = {"arch": "diet_rel_tiny", "task": "translation"}
    old |= {"arch" if part == "model" else part: name}
    with pytest.raises(UserError, match=f"{part} {name};"):
        load(saved(tmp_path / "old.pt", args=old))
    monkeypatch.setenv(VARIABLE, f"another,{name}")
    assert load(file)


@pytest.mark.parametrize(
    ("section", "content", "named"),
    [
        # fairseq takes what a task calls its task before its name.
        ("task", {"_name": "translation", "task": "speech_to_text"}, "task speech_to_text"),
        ("model", {"wav2vec_ctc": {"w2v_path": "x.pt"}}, "model wav2vec_ctc"),
        ("model", {"_name": None, "hubert": {}}, "model hubert"),
        ("model", {"_name": "diet_rel_tiny", "arch": "hubert"}, "model hubert"),
        ("model", Namespace(arch="hubert", task="translation"), "model hubert"),
        ("model", {"dropout": 0.1, "layers": 2}, "model dropout"),
        ("criterion", Namespace(_name="cross_entropy", criterion="ctc"), "criterion ctc"),
        ("model", {**OURS["model"], "w2v_args": {"model": {"_name": "hubert"}}}, "model hubert"),
        ("model", {**OURS["model"], "w2v_args": Namespace(task="dummy_lm")}, "task dummy_lm"),
    ],
)
def test_every_name_that_fairseq_would_take_is_checked(
    section: str, content: Any, named: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"d\.pt: .*{named};"):
        load(saved(tmp_path / "d.pt", **{section: content}))


@pytest.mark.parametrize("kind", [dict, Namespace])
def test_no_criterion_of_a_checkpoint_writes_a_file(kind: Any, tmp_path: Path) -> None:
    """fairseq-validate builds it, and this one opens its file for writing."""
    ranking = kind(_name="sentence_ranking", save_predictions="precious")
    file = saved(tmp_path / "f.pt", criterion=ranking)
    assert load(file)["cfg"].criterion.save_predictions is None


def test_no_shell_runs_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq indexes FASTA by a shell command with the path of the data."""
    monkeypatch.chdir(tmp_path)
    Path("train.a-$(touch ran).a.fasta").write_text(">\nA\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"touch ran"):
        data_utils.load_indexed_dataset("train.a-$(touch ran).a")
    assert not Path("ran").exists()


# Files that a checkpoint names

CODES = "#version: 0.2\na b</w>\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run/checkpoint_best.pt, its data in bin/, and a file elsewhere."""
    folder = tmp_path_factory.mktemp("confined")
    for inner in ("bin", "elsewhere"):
        (folder / inner).mkdir()
    for lang in ("en", "de"):
        (folder / "bin" / f"dict.{lang}.txt").write_text("ab 1\na@@ 1\nb 1\n")
    (folder / "elsewhere" / "codes").write_text(CODES)
    write_checkpoint(folder / "bin", folder / "run", "-s", "en", "-t", "de")
    (folder / "run" / "sub").mkdir()
    return folder


@pytest.fixture
def place(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shutil.copytree(original, tmp_path, dirs_exist_ok=True))
    return tmp_path


def change(place: Path, **sections: dict[str, Any]) -> str:
    path = place / "run" / "checkpoint_best.pt"
    state = torch.load(path, weights_only=True)
    for name, options in sections.items():
        state["cfg"][name] = {**(state["cfg"][name] or {}), **options}
    torch.save(state, path)
    return str(path)


def hub(**given: Any) -> Any:
    return DietTransformerModel.from_pretrained("run", "checkpoint_best.pt", "bin", **given)


@pytest.mark.parametrize(
    ("named", "own", "given", "opened"),
    [
        ("ADDRESS/codes", None, None, False),
        ("PLACE/elsewhere/codes", None, None, False),
        ("elsewhere/codes", None, None, False),
        ("../elsewhere/codes", None, None, False),
        ("PLACE/run/../elsewhere/codes", None, None, False),
        ("PLACE/run/sub/codes", "sub/codes", None, True),
        ("sub/codes", "sub/codes", None, True),
        ("/gone/codes.en", "codes.en", None, True),
        ("/gone/codes.en", "../bin/codes.en", None, True),
        ("/gone/codes.en", None, "elsewhere/codes", True),
    ],
)
def test_a_bpe_is_in_the_folder_or_given(
    place: Path, named: str, own: str | None, given: str | None, opened: bool
) -> None:
    if own:
        (place / "run" / own).write_text(CODES)
    with serving({"codes": CODES.encode()}) as server:
        named = named.replace("ADDRESS", server.url).replace("PLACE", str(place))
        change(place, bpe={"_name": "subword_nmt", "bpe_codes": named})
        more = {} if given is None else {"bpe_codes": given}
        if opened:
            assert hub(**more).apply_bpe("ab ba") == "ab b@@ a"
        else:
            with pytest.raises(OSError, match="run/codes"):
                hub(**more)
        assert server.requests == []


def test_other_files_that_a_checkpoint_names(place: Path) -> None:
    outside = str(place / "elsewhere" / "codes")
    path = change(
        place,
        model={"encoder_embed_path": outside},
        task={"lang_dict": outside, "eval_bleu_detok": "space", "extra_data": {"mono": "/etc"}},
        generation={"replace_unk": outside, "lm_path": "http://host/lm"},
        bpe={"_name": "bert", "bpe_vocab_file": ""},
    )
    cfg = load(path, {})["cfg"]
    inside = str(place / "run" / "codes")
    assert (cfg.task.lang_dict, cfg.generation.replace_unk) == (inside, inside)
    assert cfg.generation.lm_path == str(place / "run" / "lm")
    # transformers would download it.
    assert cfg.bpe.bpe_vocab_file == str(place / "run" / "vocab.txt")
    # The weights of a checkpoint are its own; other options stay.
    assert (cfg.model.encoder_embed_path, cfg.task.extra_data) == (None, None)
    assert cfg.task.eval_bleu_detok == "space"
    assert os.path.basename(cfg.task.data) == "bin"
    with pytest.raises(UserError, match=r"source_lang \.\./"):
        load(change(place, task={"source_lang": "../../etc/en"}), {})


def test_the_files_of_gpt2_are_for_users_who_name_the_bpe(tmp_path: Path) -> None:
    address = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/encoder.json"
    for given, expected in (({}, str(tmp_path / "encoder.json")), ({"bpe": "gpt2"}, address)):
        bpe = {"_name": "gpt2", "gpt2_encoder_json": address}
        state = {"cfg": OmegaConf.create({"bpe": bpe})}
        confine(state, str(tmp_path), given)
        assert state["cfg"].bpe.gpt2_encoder_json == expected


def test_no_bpe_is_downloaded_because_a_checkpoint_names_it(place: Path) -> None:
    """fairseq would, where it names no files; in each form of options, fairseq's old one last."""
    path = change(place)
    original = torch.load(path, weights_only=True)
    files = {"gpt2_encoder_json": "encoder.json", "gpt2_vocab_bpe": "vocab.bpe"}
    inside = {option: str(place / "run" / file) for option, file in files.items()}
    for bpe in ("gpt2", {"_name": "gpt2"}, Namespace(bpe="gpt2")):
        torch.save({**original, "cfg": {**original["cfg"], "bpe": bpe}}, path)
        options = load(path, {})["cfg"].bpe
        actual = vars(options) if isinstance(options, Namespace) else options
        assert inside.items() <= dict(actual).items()
    old = {**original["cfg"]["task"], **original["cfg"]["model"], "arch": "diet_rel_tiny"}
    old |= {"task": "translation", "bpe": "gpt2", "bpe_codes": "elsewhere/codes", "data": "bin"}
    torch.save({**original, "cfg": None, "args": Namespace(**old)}, path)
    inside["bpe_codes"] = str(place / "run" / "codes")
    assert inside.items() <= vars(load(path, {})["args"]).items()


def test_files_of_a_stack_are_options_too(place: Path) -> None:
    """fairseq takes a table in place of the options of a stack."""
    stack = {"embed_path": str(place / "elsewhere" / "codes"), "vocab_file": "../elsewhere/codes"}
    path = change(place, model={"_name": "transformer", "encoder": stack})
    encoder = load(path, {})["cfg"].model.encoder
    assert encoder == {"embed_path": None, "vocab_file": str(place / "run" / "codes")}


def test_attributes_of_a_table_are_no_options(place: Path) -> None:
    """A pickle may give an OrderedDict attributes, which fairseq would read as its options."""
    path = change(place)
    state = torch.load(path, weights_only=True)
    bpe = OrderedDict()
    vars(bpe).update(_name="sentencepiece", sentencepiece_model="http://host/${oc.env:HOME}")
    options = OrderedDict(x=1)
    vars(options).update(arch="wav2vec2", task="translation", data="bin")
    state["cfg"]["bpe"] = bpe
    torch.save({**state, "args": options}, path)
    read = safe_load.read(path)
    assert (vars(read["cfg"]["bpe"]), vars(read["args"]), read["args"]) == ({}, {}, {"x": 1})
    assert isinstance(read["model"], dict)


# Options that are Python text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(0.9, 0.98)", (0.9, 0.98)),
        (" [100, 200]", [100, 200]),
        ("-1e-3", -1e-3),
        ("{'a': [True, None]}", {"a": [True, None]}),
        ("[(512, 3)] * 2 + [(1, 1)]", [(512, 3), (512, 3), (1, 1)]),
        ("3 * 0.5 + 1", 2.5),
    ],
)
def test_literals_are_read(text: str, value: Any) -> None:
    assert literal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os').system('true')", "[print(1) or 2]", "(lambda: 1)()", "print"),
        *("(1).__class__", "[x for x in (1, 2)]", "f'{1}'", "1 if 1 else 2", "2 ** 9", "1 and 2"),
        *("[0] * 10 ** 9", "[0] * 99999", "99999 * 'a'", "1 / 0", "'a' * 'b'", "(", "", "1\n2"),
        *("[0] * 9999 + [0] * 9999", "(0,) + [1]", "{} * 2"),
        *("(" * 5000, "-" * 9999 + "1", "1" * 20000),
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UserError) as refused:
        literal(text)
    assert len(str(refused.value)) < 300


def test_fairseqs_functions_read_literals_alone(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    code = f"[__import__('pathlib').Path({str(witness)!r}).touch() or 100, 200]"
    for function in (utils.eval_str_list, utils.eval_str_dict, utils.eval_bool):
        with pytest.raises(UserError):
            function(code)
    with pytest.raises(UserError):
        build("diet-rel", adaptive_softmax_cutoff=code)
    assert not witness.exists()
    assert utils.eval_str_list("[1, 2]", type=int) == [1, 2]
    assert utils.eval_bool(None, default=True) is True


# What fairseq calls that could run code or a program: all of it was read for docs/security.md.
_CALLS = re.compile(
    r"(?<![\w.])exec\(|\bpickle\.(?:loads?|Unpickler)\(|\btorch\.load\(|\bimport_module\("
    r"|\bextractall\(|\bsubprocess\.(?!Call)\w+\(|\bos\.(?:system|popen)\(|\byaml\.load\("
    r"|\btorch\.hub\.load\(|\ballow_pickle=True"
)
READ = {
    "checkpoint_utils.py": {"torch.load"},
    "data/audio/data_cfg.py": {"yaml.load"},
    "data/codedataset.py": {"torch.load"},
    "data/fasta_dataset.py": {"subprocess.check_output"},
    "data/plasma_utils.py": {"subprocess.Popen"},
    "distributed/utils.py": {"pickle.loads", "subprocess.check_output", "torch.load"},
    "file_utils.py": {"extractall"},
    "models/speech_to_text/hub_interface.py": {"torch.hub.load"},
    "models/speech_to_text/xm_transformer.py": {"torch.load"},
    "models/text_to_speech/vocoder.py": {"torch.load"},
    "modules/quantization/pq/em.py": {"torch.load"},
    "tasks/audio_pretraining.py": {"subprocess.call"},
    **{
        name: {"import_module"}
        for name in (
            *("criterions/__init__.py", "data/audio/__init__.py", "data/encoders/__init__.py"),
            "data/audio/feature_transforms/__init__.py",
            *("model_parallel/criterions/__init__.py", "model_parallel/models/__init__.py"),
            *("models/__init__.py", "models/ema/__init__.py", "models/huggingface/__init__.py"),
            *("optim/__init__.py", "optim/fused_adam.py", "optim/lr_scheduler/__init__.py"),
            *("scoring/__init__.py", "tasks/__init__.py", "utils.py"),
        )
    },
}


def test_fairseq_calls_nothing_that_was_not_read() -> None:
    package = Path(fairseq.__file__).parent
    evaluating = set()
    for path in package.rglob("*.py"):
        name, text = str(path.relative_to(package)), path.read_text(encoding="utf-8")
        if not name.startswith("examples"):
            calls = {call.rstrip("(") for call in _CALLS.findall(text)}
            assert calls <= READ.get(name, set()), name
            if re.search(r"(?<![\w.])(eval|exec)\(", text):
                evaluating.add(name.removesuffix(".py").replace("/", "."))
    assert evaluating == set(EVALUATING)
    for name in EVALUATING:
        assert importlib.import_module(f"fairseq.{name}").eval is literal


# Archives


def packed(path: Path, *names: str, kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, 4 if kind == tarfile.REGTYPE else 0
            member.linkname = "/etc/passwd"
            archive.addfile(member, io.BytesIO(b"text"))
    return path


def test_an_archive_is_unpacked_elsewhere_and_stays(tmp_path: Path) -> None:
    archive = packed(tmp_path / "model.tar.gz", "model/dict.txt", "model/model.pt")
    before = archive.read_bytes()
    folder = Path(str(file_utils.load_archive_file(str(archive))))
    assert sorted(path.name for path in folder.iterdir()) == ["dict.txt", "model.pt"]
    assert archive.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.tar.gz"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("../outside", tarfile.REGTYPE), ("a/../../outside", tarfile.REGTYPE)),
        *(("ABSOLUTE", tarfile.REGTYPE), ("link", tarfile.SYMTYPE), ("link", tarfile.LNKTYPE)),
        ("pipe", tarfile.FIFOTYPE),
    ],
)
def test_an_archive_that_would_write_elsewhere_is_refused(
    name: str, kind: bytes, tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    name = name.replace("ABSOLUTE", str(tmp_path / "outside"))
    archive = packed(inside / "model.tar.gz", "fine", name, kind=kind)
    with pytest.raises(UserError, match=r"model\.tar\.gz"):
        file_utils.load_archive_file(str(archive))
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "model.tar.gz"]


def test_a_folder_is_itself_and_another_file_is_refused(tmp_path: Path) -> None:
    assert file_utils.load_archive_file(str(tmp_path)) == str(tmp_path)
    file = tmp_path / "model.tar.gz"
    file.write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(UserError, match=r"model\.tar\.gz"):
        file_utils.load_archive_file(str(file))


def test_nothing_is_downloaded(tmp_path: Path) -> None:
    """fairseq would unpack it as it unpacks a file; as model, and as data."""
    body = packed(tmp_path / "bad.tar.gz", "../outside").read_bytes()
    with serving({"bad.tar.gz": body}) as server:
        address = f"{server.url}/bad.tar.gz"
        for given in ((address,), (str(tmp_path), "x.pt", address), (f"{tmp_path}/gone",)):
            with pytest.raises(UserError, match=r"bad\.tar\.gz|gone"):
                hub_utils.from_pretrained(*given)
        assert server.requests == []


def test_a_checkpoint_names_its_folder_and_itself(tmp_path: Path) -> None:
    def load(path: str, checkpoint_file: str = "model.pt", data: str = ".", **more: Any) -> Any:
        return path, checkpoint_file, data, more

    file = tmp_path / "checkpoint_best.pt"
    file.write_bytes(b"PK")
    folder, name = str(tmp_path), file.name
    for given, expected in (
        ((file, "model.pt", "bin"), (folder, name, "bin", {})),
        ((str(file),), (folder, name, ".", {})),
        ((tmp_path, "b.pt"), (folder, "b.pt", ".", {})),
    ):
        assert from_pretrained(load, *given) == expected
