"""fairseq's other options work with positions in attention, through the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq.modules.quantization.scalar.modules import IntEmbedding, IntLinear

from .rescoring import TOLERANCE, load, positional_scores
from .test_resume import state
from .transcript import Translation, losses, texts, translations
from .workshop import ONE_CHECKPOINT, SEARCH, USER_DIR, Workshop


def assert_scores_of_full_pass(
    found: dict[int, Translation], workshop: Workshop, *checkpoints: Path, **overrides: object
) -> None:
    """Every printed hypothesis has the scores of teacher forcing."""
    models, task = load(*checkpoints, **overrides)
    lines = workshop.lines()
    assert sorted(found) == list(range(len(lines)))
    for number, one in found.items():
        for text, scores in zip(one.texts, one.positional, strict=True):
            expected = positional_scores(models, task, lines[number], text)
            assert scores == pytest.approx(expected, abs=TOLERANCE), (number, text)


@pytest.mark.parametrize("pair", [("diet-rel", "diet-rel"), ("diet-rel", "linformer")])
def test_ensembles(workshop: Workshop, pair: tuple[str, str]) -> None:
    """One model twice is that model; two encodings decode together."""
    members = [workshop.checkpoint(encoding) for encoding in pair]
    path = ("--path", ":".join(map(str, members)))
    found = translations(workshop.generate(pair[0], *path).ok().stdout)
    assert_scores_of_full_pass(found, workshop, *members)
    alone = texts(workshop.decoded(pair[0]))
    together = [found[number].texts[0] for number in sorted(found)]
    assert (together == alone) is (pair[0] == pair[1])


def test_alignments_stay_inside_the_sentence(workshop: Workshop) -> None:
    """Padded on the left, on the right, or not at all: the same words are aligned."""
    encoding = "diet-rel"
    batchings = {
        "left": ("--batch-size", 10),
        "right": ("--batch-size", 10, "--left-pad-source"),
        "alone": ("--batch-size", 1),
    }
    found = {
        name: translations(workshop.generate(encoding, "--print-alignment", *options).ok().stdout)
        for name, options in batchings.items()
    }
    lines = workshop.lines()
    for number, one in found["left"].items():
        length = len(lines[number].split())
        words = len(one.texts[0].split())
        pairs = one.alignments[0]
        assert [target for _, target in pairs] == list(range(words))
        assert all(0 <= source < length for source, _ in pairs)
        for name in ("right", "alone"):
            assert found[name][number].alignments == one.alignments, (name, number)
    # A model that has learnt the language looks about: not everything at one word.
    sources = {source for one in found["left"].values() for source, _ in one.alignments[0]}
    assert len(sources) > 5


def test_a_given_beginning(workshop: Workshop) -> None:
    encoding = "diet-rel"
    done = workshop.generate(encoding, "--prefix-size", 2).ok()
    found = translations(done.stdout)
    for number, reference in enumerate(workshop.lines("test.tgt")):
        assert found[number].texts[0].split()[:2] == reference.split()[:2]
    assert_scores_of_full_pass(found, workshop, workshop.checkpoint(encoding))


def test_sampling(workshop: Workshop) -> None:
    encoding = "diet-rel"
    options = ("--sampling", "--beam", 3, "--nbest", 3, "--seed", 1)
    found = translations(workshop.generate(encoding, *options).ok().stdout)
    assert_scores_of_full_pass(found, workshop, workshop.checkpoint(encoding))
    assert any(len(set(one.texts)) > 1 for one in found.values())


def test_layer_drop_and_pruning(workshop: Workshop, tmp_path: Path) -> None:
    encoding = "diet-rel"
    dropping = ("--encoder-layerdrop", 0.5, "--decoder-layerdrop", 0.5, "--max-update", 30)
    workshop.train(encoding, tmp_path, *dropping).ok()
    checkpoint = tmp_path / "checkpoint_last.pt"
    path = ("--path", checkpoint, *USER_DIR, *SEARCH)
    kept = {"encoder_layers_to_keep": "1", "decoder_layers_to_keep": "1"}
    pruned = workshop.run("generate", workshop.bin, *path, "--model-overrides", repr(kept)).ok()
    assert_scores_of_full_pass(translations(pruned.stdout), workshop, checkpoint, **kept)
    whole = workshop.run("generate", workshop.bin, *path).ok()
    assert translations(whole.stdout) != translations(pruned.stdout)
    (model,), _ = load(checkpoint, **kept)
    saved = state(tmp_path)["model"]
    tables = {name: value for name, value in model.state_dict().items() if "attn_positions" in name}
    assert tables
    for name, value in tables.items():  # the second layer has become the first
        assert torch.equal(value, saved[name.replace(".layers.0.", ".layers.1.")]), name


def test_scalar_quantization(workshop: Workshop, tmp_path: Path) -> None:
    """Trained with noise, decoded with all layers rounded to 8 bits."""
    encoding = "concat"
    options = ("--quant-noise-scalar", 0.1, "--max-update", 2, *ONE_CHECKPOINT)
    done = workshop.train(encoding, tmp_path, *options).ok()
    assert len(losses(done.stdout)) == 2
    checkpoint = tmp_path / "checkpoint_last.pt"
    (model,), _ = load(checkpoint)
    words = 28  # of 32 columns concat gives 4 to positions
    embedding = model.encoder.embed_tokens
    assert isinstance(embedding, IntEmbedding)
    assert isinstance(model.decoder.layers[1].encoder_attn.q_proj, IntLinear)
    assert embedding.weight.size(1) == words
    assert embedding(torch.tensor([[4, 5, 6]])).shape == (1, 3, 32)
    for name, value in state(tmp_path)["model"].items():
        if name.endswith("embed_tokens.weight"):
            assert value.size(1) == words, name
    decoded = workshop.generate(encoding, "--path", checkpoint).ok()
    assert len(translations(decoded.stdout)) == len(workshop.lines())
