"""Public reports of wrong losses, averages and dictionaries, tried in this package's training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from diet_mt.corpora.binarized import read_dictionary
from diet_mt.errors import UserError

from ..calling import called
from ..checkpoints import config_of, state_of
from ..commands.workshop import USER_DIR, Workshop
from ..fairseq_patches.test_label_smoothing import batch, criterion
from ..toy import PAD, SAME_WIDTH, build, close


def test_label_smoothing_by_hand() -> None:
    """fairseq #3182: the target gets eps / V on top of 1 - eps.

    label_smoothing: 1 - eps for the target, and eps for the others together.
    """
    model = build("diet-rel")
    made, sample = criterion(0.1), batch()
    made.padding_idx = PAD
    loss, size, logged = made(model, sample)
    logs = model(**sample["net_input"])[0].log_softmax(-1)
    others = logs.size(-1) - 1
    expected = logs.new_zeros(())
    for row, words in zip(logs, sample["target"], strict=True):
        for log, word in zip(row, words, strict=True):
            if word != PAD:
                expected -= 0.9 * log[word] + 0.1 * (log.sum() - log[word]) / others
    close(loss, expected)
    assert size == logged["ntokens"] == sample["target"].ne(PAD).sum()


def test_accumulated_gradients() -> None:
    """fairseq #5256: ``--update-freq`` does not divide by the number of batches.

    The sums of both parts, divided by the tokens of both, are the gradient of the whole batch.
    """
    model, made = build("shaw"), criterion(0.1)
    made.padding_idx = PAD

    def gradient(*parts: slice) -> list[torch.Tensor]:
        model.zero_grad()
        tokens = 0
        for part in parts:
            loss, size, _ = made(model, batch(part))
            loss.backward()
            tokens += size
        return [p.grad / tokens for p in model.parameters() if p.grad is not None]

    for whole, halves in zip(gradient(slice(5)), gradient(slice(2), slice(2, 5)), strict=True):
        close(halves, whole)


def averaged(folder: Path, name: str) -> Path:
    out = folder / name
    paths = [folder / f"{number}.pt" for number in (1, 2, 3)]
    assert called("average", *paths, "--out", out) == 0
    return out


def test_the_mean_of_shared_embeddings(tmp_path: Path) -> None:
    """fairseq #743: what encoder and decoder share is added once for each of its names.

    fairseq #602: the mean of the same checkpoints differs from call to call.
    """
    shared: dict[str, Any] = {"share_all_embeddings": True, **SAME_WIDTH}
    models = [build("t5", seed=seed, **shared) for seed in (1, 2, 3)]
    cfg = config_of(
        "data", "--arch", "t5_tiny", "--task", "translation", "--source-lang", "a",
        "--target-lang", "b", *map(str, USER_DIR),
    )  # fmt: skip
    for number, model in enumerate(models, start=1):
        torch.save(state_of(cfg, model, updates=number), tmp_path / f"{number}.pt")
    files = [averaged(tmp_path, name) for name in ("once.pt", "again.pt")]
    once, again = (torch.load(file, weights_only=True)["model"] for file in files)
    states = [model.state_dict() for model in models]
    for name, value in once.items():
        assert torch.equal(value, again[name]), name
        if "signature" not in name:
            close(value, torch.stack([state[name] for state in states]).mean(0))
    names = "encoder.embed_tokens.weight", "decoder.output_projection.weight"
    assert once[names[0]].data_ptr() == once[names[1]].data_ptr()


@pytest.mark.parametrize("option", ["max_source_positions", "max_target_positions"])
@pytest.mark.parametrize("encoding", ["learned", "diet-abs", "linformer"])
def test_other_numbers_of_positions(encoding: str, option: str) -> None:
    """mRASP #1: fine-tuning ends in ``size mismatch for encoder.embed_positions.weight``."""
    state = build(encoding).state_dict()
    longer: dict[str, Any] = {option: 13}
    with pytest.raises(UserError, match=f"--{option.replace('_', '-')}"):
        build(encoding, **longer).load_state_dict(state)


@pytest.mark.parametrize("encoding", ["t5", "rotary", "alibi", "shaw"])
def test_positions_without_end_load_at_any_length(encoding: str) -> None:
    """transformers #8518: relative positions have no longest sentence to be of one size with."""
    longer = build(encoding, max_source_positions=40, max_target_positions=40, seed=2)
    longer.load_state_dict(build(encoding).state_dict())


@pytest.mark.parametrize("word", ["<s>", "<pad>", "</s>", "<unk>"])
def test_special_symbols_in_a_dictionary(word: str, tmp_path: Path) -> None:
    """fairseq #1309: symbols of fairseq in a dictionary are there twice, and numbers shift."""
    file = tmp_path / "dict.txt"
    file.write_text(f"a 3\n{word} 2\nb 1\n", encoding="utf-8")
    with pytest.raises(UserError, match=f"line 2: .*'{word}'"):
        read_dictionary(file)


def test_special_symbols_in_text(workshop: Workshop, tmp_path: Path) -> None:
    """fairseq #303: a dictionary made from text with special symbols cannot be used again."""
    text = "one <s> two </s> <pad> one <unk>\n"
    for side in ("src", "tgt"):
        (tmp_path / f"train.{side}").write_text(text, encoding="utf-8")
    languages = ("--source-lang", "src", "--target-lang", "tgt", "--joined-dictionary")
    for name, more in (("first", ()), ("again", ("--srcdict", tmp_path / "first/dict.src.txt"))):
        workshop.run(
            "preprocess", *USER_DIR, *languages, "--trainpref", tmp_path / "train",
            "--destdir", tmp_path / name, *more,
        ).ok()  # fmt: skip
    files = [tmp_path / name / "dict.src.txt" for name in ("first", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert read_dictionary(files[0]) == Dictionary.load(str(files[0])).indices


def test_resumed_with_the_same_weights(workshop: Workshop, tmp_path: Path) -> None:
    """fairseq #2018: the learning rate is another one after a restart.

    fairseq #3641: updates are counted from 0 again.
    """
    words = ("--max-update", 101, "--restore-file", workshop.checkpoint("diet-rel"))
    done = workshop.train("diet-rel", tmp_path, *words, "--save-interval-updates", 1).ok()
    (line,) = [each for each in done.stdout.split("\n") if '"num_updates": "101"' in each][:1]
    assert f'"lr": "{0.01 * (40 / 101) ** 0.5:.6g}"' in line
