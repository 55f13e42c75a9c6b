"""Files that a checkpoint names are those of its own folder, whoever loads it."""

from __future__ import annotations

import os
import shutil
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from diet_mt.errors import UserError
from diet_mt.fairseq_patches import safe_checkpoints
from diet_mt.fairseq_patches.confined import confine
from diet_mt.models.diet_transformer import DietTransformerModel

from ..checkpoints import write_checkpoint
from ..corpora.server import serving

pytestmark = pytest.mark.hostile

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


def change(place: Path, **sections: dict[str, Any]) -> Path:
    path = place / "run" / "checkpoint_best.pt"
    state = torch.load(path, weights_only=True)
    for name, options in sections.items():
        state["cfg"][name] = {**(state["cfg"][name] or {}), **options}
    torch.save(state, path)
    return path


def hub(place: Path, **given: Any) -> Any:
    return DietTransformerModel.from_pretrained("run", "checkpoint_best.pt", "bin", **given)


@pytest.mark.parametrize(
    ("named", "own", "given", "found"),
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
    place: Path, named: str, own: str | None, given: str | None, found: bool
) -> None:
    if own:
        (place / "run" / own).write_text(CODES)
    with serving({"codes": CODES.encode()}) as server:
        named = named.replace("ADDRESS", server.url).replace("PLACE", str(place))
        change(place, bpe={"_name": "subword_nmt", "bpe_codes": named})
        more = {} if given is None else {"bpe_codes": given}
        if found:
            assert hub(place, **more).apply_bpe("ab ba") == "ab b@@ a"
        else:
            with pytest.raises(UserError, match=r"run/codes: .*bpe_codes"):
                hub(place, **more)
        assert server.addresses == []


def test_what_else_a_checkpoint_may_name(place: Path) -> None:
    outside = str(place / "elsewhere" / "codes")
    path = change(
        place,
        model={"encoder_embed_path": outside},
        task={"lang_dict": outside, "eval_bleu_detok": "space"},
        generation={"replace_unk": outside, "lm_path": "http://host/lm"},
    )
    cfg = checkpoint_utils.load_checkpoint_to_cpu(str(path), {})["cfg"]
    inside = str(place / "run" / "codes")
    assert (cfg.task.lang_dict, cfg.generation.replace_unk) == (inside, inside)
    assert cfg.generation.lm_path == str(place / "run" / "lm")
    # The weights of a checkpoint are its own, and what is no file stays.
    assert cfg.model.encoder_embed_path is None
    assert cfg.task.eval_bleu_detok == "space"
    assert os.path.basename(cfg.task.data) == "bin"


def test_options_of_fairseqs_old_form(place: Path) -> None:
    path = change(place)
    state = torch.load(path, weights_only=True)
    cfg = state.pop("cfg")
    options = {**cfg["task"], **cfg["model"], "arch": "diet_rel_tiny", "task": "translation"}
    state["args"] = Namespace(**{**options, "bpe_codes": "elsewhere/codes", "data": "bin"})
    torch.save(state, path)
    args = checkpoint_utils.load_checkpoint_to_cpu(str(path), {})["args"]
    assert args.bpe_codes == os.path.join(place, "run", "codes")


def test_the_files_of_gpt2_are_for_users_who_ask(place: Path) -> None:
    address = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/encoder.json"
    path = str(change(place, bpe={"_name": "gpt2", "gpt2_encoder_json": address}))
    for given, expected in (({}, str(place / "run" / "encoder.json")), ({"bpe": "gpt2"}, address)):
        state = {"cfg": OmegaConf.create(torch.load(path, weights_only=True)["cfg"])}
        confine(state, str(place / "run"), given)
        assert state["cfg"]["bpe"]["gpt2_encoder_json"] == expected


def test_options_of_training_and_languages(place: Path) -> None:
    path = str(change(place, task={"extra_data": {"mono": "/etc"}}))
    assert checkpoint_utils.load_checkpoint_to_cpu(path, {})["cfg"].task.extra_data is None
    path = str(change(place, task={"source_lang": "../../etc/en"}))
    with pytest.raises(UserError, match=r"source_lang \.\./"):
        checkpoint_utils.load_checkpoint_to_cpu(path, {})


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
    read = safe_checkpoints.read(str(path))
    assert (vars(read["cfg"]["bpe"]), vars(read["args"]), read["args"]) == ({}, {}, {"x": 1})
    assert isinstance(read["model"], dict)


def test_a_bert_bpe_is_not_downloaded(place: Path) -> None:
    path = change(place, bpe={"_name": "bert", "bpe_vocab_file": ""})
    cfg = checkpoint_utils.load_checkpoint_to_cpu(str(path), {})["cfg"]
    assert cfg.bpe.bpe_vocab_file == str(place / "run" / "vocab.txt")
