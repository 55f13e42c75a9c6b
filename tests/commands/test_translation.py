"""Trained models through fairseq's commands: encodings x commands, and options of decoding."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import sacrebleu
import torch
from fairseq.modules.quantization.scalar.modules import IntEmbedding, IntLinear

from .runner import run_installed
from .test_bad_input import assert_one_line
from .workshop import (
    ONE_CHECKPOINT,
    TOLERANCE,
    TRAINED,
    UPDATES,
    USER_DIR,
    Workshop,
    epoch_losses,
    json_lines,
    load,
    losses,
    measured_loss,
    positional_scores,
    state,
    texts,
    translations,
    valid_losses,
)

GNMT = ("--task", "diet_translation", "--length-penalty", "gnmt")


@pytest.mark.parametrize("encoding", TRAINED)
def test_every_command_agrees(workshop: Workshop, encoding: str) -> None:
    """validate: the loss at the end of training. generate: scores of teacher forcing, divided by
    length^lenpen. interactive: the same translations.
    """
    trained = valid_losses(workshop.log(workshop.trained(encoding)))
    checkpoint = workshop.checkpoint(encoding)
    assert measured_loss(workshop.validate(checkpoint).stdout, "valid") == trained[UPDATES]
    loaded, lines = load(checkpoint), workshop.lines()
    assert len(lines) % 8 == 5  # what fairseq-fixed cuts off where it is let
    decoded = translations(workshop.decoded(encoding))
    typed = translations(workshop.interactive(encoding, lines).ok().stdout)
    assert sorted(typed) == sorted(decoded) == list(range(len(lines)))
    for number, one in decoded.items():
        assert len(one.texts) == 1
        scores = positional_scores(*loaded, lines[number], one.texts[0])
        assert one.positional == [pytest.approx(scores, abs=TOLERANCE)], number
        score = sum(one.positional[0]) / len(one.positional[0]) ** 0.6
        assert one.scores[0] == pytest.approx(score, abs=TOLERANCE)
        assert typed[number].texts == one.texts
        assert typed[number].scores == pytest.approx(one.scores, abs=TOLERANCE)


def test_bleu_of_validation_is_that_of_every_hypothesis(workshop: Workshop) -> None:
    scoring = ("--eval-bleu", "--eval-tokenized-bleu", "--eval-bleu-args", '{"beam": 3}')
    done = workshop.validate(workshop.checkpoint("diet-rel"), *scoring)
    own = ("--gen-subset", "valid", "--beam", 3, "--max-len-b", 200, "--lenpen", 1)
    hypotheses = texts(workshop.generate("diet-rel", *own).ok().stdout)
    references = workshop.lines("valid.tgt")
    assert len(hypotheses) == len(references) == 21
    bleu = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none").score
    assert bleu > 1
    (measured,) = json_lines(done.stdout, "valid")
    assert float(measured["valid_bleu"]) == pytest.approx(bleu, abs=0.01)


def test_training_computes_what_validation_computes(workshop: Workshop, tmp_path: Path) -> None:
    """An epoch without dropout that learns nothing has the loss of the same data in evaluation.

    Both with the term: every table has moved from where it began, 0 or within 5 x 0.02 of it.
    """
    checkpoint = workshop.checkpoint("diet-rel")
    saved = state(checkpoint.parent)["model"]
    tables = {name: value for name, value in saved.items() if "attn_positions" in name}
    assert tables
    assert [name for name, value in tables.items() if value.abs().max() < 0.1] == []
    anew = [f"--reset-{part}" for part in ("optimizer", "dataloader", "meters", "lr-scheduler")]
    still = ("--lr", 1e-12, "--dropout", 0, "--max-epoch", 1, "--disable-validation")
    where = (tmp_path, "--restore-file", checkpoint)
    trained = workshop.train("diet-rel", *where, *anew, *still).ok()
    done = workshop.validate(checkpoint, "--valid-subset", "train")
    assert epoch_losses(trained.stdout)[1] == measured_loss(done.stdout, "train")


def test_a_command_as_pip_installs_it_does_the_same(workshop: Workshop, tmp_path: Path) -> None:
    """The other tests run commands in forks: here is a script itself, in a new interpreter.

    And in test_installed_package.py, with the same translations.
    """
    wrong = ("--arch", "diet_abs_tiny", "--position-rank", "0", "--max-tokens", "400", *USER_DIR)
    refused = run_installed("train", workshop.bin, *wrong, cwd=tmp_path)
    assert refused.status == 1
    assert_one_line(refused, "--position-rank 0")


# Options of fairseq-generate: padding on either side, or one sentence in a batch.
# --left-pad-source is on by default and a flag without a value: giving it switches it off.
LEFT, RIGHT = ("--max-tokens", 60), ("--max-tokens", 60, "--left-pad-source")


@pytest.mark.parametrize("encoding", TRAINED)
def test_translations_are_the_same_in_every_batch(workshop: Workshop, encoding: str) -> None:
    """As with all sentences in one."""
    expected = translations(workshop.decoded(encoding))
    for options in (LEFT, RIGHT, ("--batch-size", 1)):
        actual = translations(workshop.generate(encoding, *options).ok().stdout)
        assert sorted(actual) == list(range(len(workshop.lines())))
        for number, one in actual.items():
            assert one.texts == expected[number].texts, (options, number)
            for ours, theirs in (
                (one.scores, expected[number].scores),
                (one.positional[0], expected[number].positional[0]),
            ):
                assert ours == pytest.approx(theirs, abs=TOLERANCE)


def test_alignments_stay_inside_the_sentence(workshop: Workshop) -> None:
    """Padded on the left or on the right: the same words are aligned."""
    left, right = (
        translations(workshop.generate("diet-rel", "--print-alignment", *options).ok().stdout)
        for options in (LEFT, RIGHT)
    )
    for number, line in enumerate(workshop.lines()):
        one = left[number]
        assert right[number].alignments == one.alignments, number
        pairs, length = one.alignments[0], len(line.split())
        assert [target for _, target in pairs] == list(range(len(one.texts[0].split())))
        assert all(0 <= source < length for source, _ in pairs)
    # A model that has learnt the language looks about: not everything at one word.
    assert len({source for one in left.values() for source, _ in one.alignments[0]}) > 5


def test_the_papers_length_penalty(workshop: Workshop) -> None:
    """With a model trained by fairseq's task. Ranking: tests/tasks/test_length_penalty.py."""
    outputs = translations(workshop.generate("diet-rel", "--nbest", 10, *GNMT).ok().stdout)
    assert sorted(outputs) == list(range(len(workshop.lines())))
    for one in outputs.values():
        expected = [sum(each) / ((5 + len(each)) / 6) ** 0.6 for each in one.positional]
        assert one.scores == pytest.approx(expected, abs=TOLERANCE)
        assert one.scores == sorted(one.scores, reverse=True)


def test_checkpoints_of_the_task_serve_fairseqs(workshop: Workshop, tmp_path: Path) -> None:
    """Trained with gnmt in its validation; decoded, and trained on, by fairseq's task."""
    bleu = ("--eval-bleu", "--eval-bleu-args", json.dumps({"beam": 2, "lenpen": 0.6}))
    short = ("--max-update", 7, "--no-epoch-checkpoints")
    log = workshop.train("diet-rel", tmp_path, *short, *GNMT, *bleu).ok().stdout
    assert re.search(r'"valid_bleu": "[\d.]+"', log)
    saved = state(tmp_path)["cfg"]["task"]
    assert (saved["_name"], saved["length_penalty"]) == ("diet_translation", "gnmt")
    decoded = workshop.generate("diet-rel", "--path", tmp_path / "checkpoint_last.pt").ok()
    assert len(texts(decoded.stdout)) == len(workshop.lines())
    resumed = workshop.train("diet-rel", tmp_path, "--max-update", 8, "--task", "translation").ok()
    assert "@ 7 updates" in resumed.stdout


def test_scalar_quantization(workshop: Workshop, tmp_path: Path) -> None:
    """Trained with noise, decoded with all layers rounded to 8 bits."""
    options = ("--quant-noise-scalar", 0.1, "--max-update", 2, *ONE_CHECKPOINT)
    assert len(losses(workshop.train("concat", tmp_path, *options).ok().stdout)) == 2
    checkpoint = tmp_path / "checkpoint_last.pt"
    (model,), _ = load(checkpoint)
    assert isinstance(model.encoder.embed_tokens, IntEmbedding)
    assert model.encoder.embed_tokens.weight.size(1) == 28  # concat gives 4 of 32 to positions
    assert isinstance(model.decoder.layers[1].encoder_attn.q_proj, IntLinear)
    decoded = workshop.generate("concat", "--path", checkpoint).ok()
    assert len(translations(decoded.stdout)) == len(workshop.lines())


def test_bfloat16_on_a_cpu(workshop: Workshop, tmp_path: Path) -> None:
    """fairseq's command line takes --bf16 for a TPU, and would stop without torch_xla."""
    done = workshop.train("diet-rel", tmp_path, "--max-update", 14, "--bf16").ok()
    saved = state(tmp_path)
    common = saved["cfg"]["common"]
    assert (common["bf16"], common["tpu"]) == (True, False)
    # fairseq stores such weights as float32, but they are no others.
    weights = [value for name, value in saved["model"].items() if name.endswith(".weight")]
    assert weights
    assert all(torch.equal(value, value.bfloat16().float()) for value in weights)
    by_update = losses(done.stdout)
    assert float(by_update[14]) < float(by_update[1]) < float("inf")
    decoded = workshop.generate("diet-rel", "--path", tmp_path / "checkpoint_last.pt").ok()
    assert len(texts(decoded.stdout)) == len(workshop.lines())


def test_sentences_longer_than_the_tables(workshop: Workshop, tmp_path: Path) -> None:
    """Clipped or repeated; refused, also with a checkpoint older than the option."""
    saved = state(workshop.trained("diet-rel"))
    model = saved["cfg"]["model"]
    del (model if isinstance(model, dict) else vars(model))["beyond_table"]
    torch.save(saved, tmp_path / "checkpoint.pt")
    older = ("--path", tmp_path / "checkpoint.pt")
    assert_one_line(workshop.generate("diet-rel", *older, data=workshop.long), "invalid")
    for encoding, path, rule in (("diet-rel", older, "clip"), ("linformer", (), "repeat")):
        rules = ("--model-overrides", f"{{'beyond_table': '{rule}'}}", "--max-len-b", 80)
        done = workshop.generate(encoding, *path, *rules, data=workshop.long).ok()
        assert len(texts(done.stdout)) == 3
