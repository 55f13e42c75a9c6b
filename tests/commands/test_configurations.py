"""Command line and YAML build the model that they name: presets, options, fairseq-hydra-train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from .runner import PLUGIN, ROOT
from .test_bad_input import assert_one_line
from .test_resume import same, state
from .transcript import losses, texts, valid_losses
from .workshop import MAX_SOURCE, MAX_TARGET, SEARCH, USER_DIR, Workshop

# hydra's own, on every command line that fairseq parses in this process.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:[\s\S]*validated against ConfigStore:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*(find_module|find_loader|load_module):DeprecationWarning"),
]

HYDRA = ROOT / "config" / "hydra"


def built(data: Path, *argv: Any) -> Any:
    """The model that fairseq-train would build, without its numbers: shapes only."""
    arguments = [str(data), "--user-dir", str(PLUGIN), *map(str, argv)]
    parsed = options.parse_args_and_arch(options.get_training_parser(), arguments)
    cfg = convert_namespace_to_omegaconf(parsed)
    task = tasks.setup_task(cfg.task)
    with torch.device("meta"):
        model = task.build_model(cfg.model)
    return model


def hydra_train(
    workshop: Workshop, saved: Path, folder: Path = HYDRA, name: str = "diet_rel_tiny"
) -> tuple[Any, ...]:
    """fairseq-hydra-train with the configuration, from any working folder."""
    where = ("--config-dir", folder, "--config-name", name, f"common.user_dir={PLUGIN}")
    return ("hydra-train", *where, f"task.data={workshop.bin}", f"checkpoint.save_dir={saved}")


def shape_of(stack: Any) -> tuple[int, int, int, int]:
    layer = stack.layers[0]
    return (
        len(stack.layers),
        layer.fc2.out_features,
        layer.fc1.out_features,
        layer.self_attn.num_heads,
    )


def test_flags_win_over_the_architecture_and_keep_sides_apart(workshop: Workshop) -> None:
    """fairseq's own nested configuration would drop these flags without a word."""
    flags = (
        "--encoder-layers", 1, "--decoder-layers", 3, "--encoder-embed-dim", 24,
        "--decoder-embed-dim", 36, "--encoder-ffn-embed-dim", 40, "--decoder-ffn-embed-dim", 44,
        "--encoder-attention-heads", 2, "--decoder-attention-heads", 3,
        "--max-source-positions", MAX_SOURCE, "--max-target-positions", MAX_TARGET,
        "--encoder-normalize-before", "--dropout", 0.25,
    )  # fmt: skip
    model = built(workshop.bin, "--arch", "diet_rel_tiny", *flags)
    assert shape_of(model.encoder) == (1, 24, 40, 2)
    assert shape_of(model.decoder) == (3, 36, 44, 3)
    assert model.max_positions() == (MAX_SOURCE, MAX_TARGET)
    assert model.encoder.layers[0].normalize_before
    assert not model.decoder.layers[0].normalize_before
    assert model.encoder.dropout_module.p == model.decoder.dropout_module.p == 0.25
    tables = {name: value.shape for name, value in model.state_dict().items() if "offset" in name}
    cross = tables["decoder.encoder_attn_positions.layers.2.by_offset"]
    assert cross == (3, MAX_TARGET + MAX_SOURCE - 1)


def test_hydra_train_trains_as_train_does(workshop: Workshop, tmp_path: Path) -> None:
    saved = tmp_path / "hydra"
    overrides = [
        "model.encoder_layers=2", "model.decoder_layers=2",
        "model.encoder_embed_dim=32", "model.decoder_embed_dim=32",
        "model.encoder_ffn_embed_dim=48", "model.decoder_ffn_embed_dim=48",
        "model.encoder_attention_heads=2", "model.decoder_attention_heads=2",
        f"+model.max_source_positions={MAX_SOURCE}", f"+model.max_target_positions={MAX_TARGET}",
        f"+task.max_source_positions={MAX_SOURCE}", f"+task.max_target_positions={MAX_TARGET}",
        "model.dropout=0.1", "criterion._name=cross_entropy", "~criterion.label_smoothing",
        "optimizer.adam_betas='(0.9, 0.999)'", "optimization.lr=[0.01]",
        "lr_scheduler.warmup_updates=40", "dataset.max_tokens=400", "optimization.max_epoch=2",
        "common.log_format=json", "common.log_interval=1",
    ]  # fmt: skip
    by_hydra = workshop.run(*hydra_train(workshop, saved), *overrides, cwd=tmp_path).ok()
    folder, by_train = workshop.two_epochs("diet-rel")
    assert losses(by_hydra.stdout) == losses(by_train)
    assert valid_losses(by_hydra.stdout) == valid_losses(by_train)
    assert same(state(saved)["model"], state(folder)["model"])
    path = ("--path", saved / "checkpoint_last.pt", *USER_DIR, *SEARCH)
    generated = workshop.run("generate", workshop.bin, *path).ok()
    assert len(texts(generated.stdout)) == len(workshop.lines())


def test_a_misspelt_key_in_yaml_is_an_error(workshop: Workshop, tmp_path: Path) -> None:
    text = (HYDRA / "diet_rel_tiny.yaml").read_text(encoding="utf-8")
    wrong = text.replace("  position_encoding:", "  position_encodings:")
    (tmp_path / "wrong.yaml").write_text(wrong, encoding="utf-8")
    command = hydra_train(workshop, tmp_path / "saved", tmp_path, "wrong")
    done = workshop.run(*command, cwd=tmp_path)
    assert done.status != 0
    assert "position_encodings" in done.stderr
    assert not list(tmp_path.glob("saved/*.pt"))


@pytest.mark.parametrize(
    ("override", "fragment"),
    [
        ("model.position_encoding=diet", "--position-encoding diet: unknown"),
        ("task.data=/nonexistent", "/nonexistent"),
    ],
)
def test_bad_input_of_hydra_train_ends_in_one_line(
    workshop: Workshop, tmp_path: Path, override: str, fragment: str
) -> None:
    """hydra catches errors itself and shows them with a traceback, unless it is told not to."""
    saved = tmp_path / "saved"
    done = workshop.run(*hydra_train(workshop, saved), override, cwd=tmp_path)
    assert_one_line(done, fragment)
    assert not list(tmp_path.glob("saved/*.pt"))
