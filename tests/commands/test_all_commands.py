"""Every fairseq command works on a trained checkpoint, and all of them say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sacrebleu
import torch

from .rescoring import TOLERANCE, load, positional_scores
from .runner import ROOT, Runner, run_installed
from .transcript import epoch_losses, json_lines, measured_loss, texts, translations, valid_losses
from .workshop import SEARCH, TRAINED, UPDATES, USER_DIR, Workshop

# As a user writes it: the model's class, and fairseq's hub for whoever has only the folder.
PYTHON = f"""
import json, sys
from fairseq import hub_utils

folder, data = sys.argv[1:]
lines = sys.stdin.read().split("\\n")[:-1]
parts = hub_utils.from_pretrained(
    folder, "checkpoint_last.pt", data, user_dir={str(ROOT / "diet_mt")!r}
)
hub = hub_utils.GeneratorHubInterface(parts["args"], parts["task"], parts["models"])

from diet_mt.models.diet_transformer import DietTransformerModel

model = DietTransformerModel.from_pretrained(
    folder, checkpoint_file="checkpoint_last.pt", data_name_or_path=data
)
search = dict(beam=10, lenpen=0.6, max_len_b=30)
print(json.dumps([each.translate(lines, **search) for each in (model, hub)]))
"""


@pytest.mark.parametrize("encoding", TRAINED)
def test_validate_gives_the_loss_at_the_end_of_training(
    workshop: Workshop, runner: Runner, encoding: str
) -> None:
    folder = workshop.trained(encoding)
    trained = valid_losses((folder / "log").read_text(encoding="utf-8"))
    checkpoint = ("--path", folder / "checkpoint_last.pt", *USER_DIR)
    task = ("--task", "translation")  # fairseq-validate has no default
    sizes = ("--max-tokens", 400, "--log-format", "json")
    done = runner("validate", workshop.bin, *task, *checkpoint, *sizes).ok()
    assert measured_loss(done.stdout, "valid") == trained[UPDATES]


def test_bleu_of_validation_is_that_of_every_hypothesis(workshop: Workshop, runner: Runner) -> None:
    path = ("--path", workshop.checkpoint("diet-rel"), *USER_DIR)
    scoring = ("--eval-bleu", "--eval-tokenized-bleu", "--eval-bleu-args", '{"beam": 3}')
    words = (*path, "--task", "translation", "--max-tokens", 400, "--log-format", "json", *scoring)
    done = runner("validate", workshop.bin, *words).ok()
    own = ("--gen-subset", "valid", "--beam", 3, "--max-len-b", 200, "--lenpen", 1)
    hypotheses = texts(workshop.generate("diet-rel", *own).ok().stdout)
    references = workshop.lines("valid.tgt")
    assert len(hypotheses) == len(references) == 21
    bleu = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none").score
    assert bleu > 1
    (measured,) = json_lines(done.stdout, "valid")
    assert float(measured["valid_bleu"]) == pytest.approx(bleu, abs=0.01)


def test_five_sentences_are_enough_to_train(
    workshop: Workshop, runner: Runner, tmp_path: Path
) -> None:
    for part in ("train", "valid"):
        for side in ("src", "tgt"):
            lines = "\n".join(workshop.lines(f"{part}.{side}")[:5])
            (tmp_path / f"{part}.{side}").write_text(f"{lines}\n", encoding="utf-8")
    parts = ("--trainpref", tmp_path / "train", "--validpref", tmp_path / "valid")
    languages = ("--source-lang", "src", "--target-lang", "tgt", "--joined-dictionary")
    runner("preprocess", *languages, *parts, "--destdir", tmp_path / "bin").ok()
    words = (*workshop.training(), "--arch", "diet_rel_tiny", "--save-dir", tmp_path / "run")
    usual = ("--required-batch-size-multiple", 8, "--max-epoch", 1)
    log = runner("train", tmp_path / "bin", *words, *usual).ok().stdout
    (epoch,) = json_lines(log, "train")
    assert (epoch["train_num_updates"], epoch["train_bsz"]) == ("1", "5")


def test_training_computes_what_validation_computes(
    workshop: Workshop, runner: Runner, tmp_path: Path
) -> None:
    """An epoch without dropout that learns nothing has the loss of the same data in evaluation.

    Both with the term: every table has moved from where it began, 0 or within 5 x 0.02 of it.
    """
    encoding = "diet-rel"
    checkpoint = workshop.checkpoint(encoding)
    saved = torch.load(checkpoint, map_location="cpu")["model"]
    tables = {name: value for name, value in saved.items() if "attn_positions" in name}
    assert tables
    assert [name for name, value in tables.items() if value.abs().max() < 0.1] == []
    anew = [f"--reset-{part}" for part in ("optimizer", "dataloader", "meters", "lr-scheduler")]
    still = ("--lr", 1e-12, "--dropout", 0, "--max-epoch", 1, "--disable-validation")
    where = (tmp_path, "--restore-file", checkpoint)
    trained = workshop.train(encoding, *where, *anew, *still).ok()
    task = ("--task", "translation", "--path", checkpoint, *USER_DIR)
    sizes = ("--valid-subset", "train", "--max-tokens", 400, "--log-format", "json")
    done = runner("validate", workshop.bin, *task, *sizes).ok()
    assert epoch_losses(trained.stdout)[1] == measured_loss(done.stdout, "train")


@pytest.mark.parametrize("encoding", TRAINED)
def test_generate_and_interactive_agree_on_every_sentence(
    workshop: Workshop, runner: Runner, encoding: str
) -> None:
    lines = workshop.lines()
    assert len(lines) % 8 == 5  # what fairseq-fixed cuts off where it is let
    found = translations(workshop.decoded(encoding))
    assert sorted(found) == list(range(len(lines)))
    path = ("--path", workshop.checkpoint(encoding), *USER_DIR, *SEARCH)
    typed = runner("interactive", workshop.bin, *path, stdin="\n".join(lines) + "\n").ok()
    repeated = translations(typed.stdout)
    assert sorted(repeated) == sorted(found)
    for number, one in found.items():
        assert repeated[number].texts == one.texts
        assert repeated[number].scores == pytest.approx(one.scores, abs=TOLERANCE)


def test_python_translates_as_generate_does(
    workshop: Workshop, runner: Runner, tmp_path: Path
) -> None:
    encoding = "diet-rel"
    (tmp_path / "client.py").write_text(PYTHON, encoding="utf-8")
    stdin = "\n".join(workshop.lines()) + "\n"
    where = (workshop.trained(encoding), workshop.bin)
    done = runner(str(tmp_path / "client.py"), *where, stdin=stdin).ok()
    by_class, by_hub = json.loads(done.stdout.strip().split("\n")[-1])
    expected = texts(workshop.decoded(encoding))
    assert by_class == expected
    assert by_hub == expected
    assert len(set(expected)) > len(expected) // 2  # not one answer for everything


@pytest.mark.parametrize("encoding", TRAINED)
def test_search_scores_are_those_of_one_full_pass(workshop: Workshop, encoding: str) -> None:
    models, task = load(workshop.checkpoint(encoding))
    lines = workshop.lines()
    for number, found in translations(workshop.decoded(encoding)).items():
        expected = positional_scores(models, task, lines[number], found.texts[0])
        assert found.positional[0] == pytest.approx(expected, abs=TOLERANCE)
        # fairseq divides by the length, its end included, to the power of --lenpen.
        score = sum(expected) / len(expected) ** 0.6
        assert found.scores[0] == pytest.approx(score, abs=TOLERANCE)


def test_tables_in_attention_teach_the_order_of_words(workshop: Workshop) -> None:
    """The toy language is word for word but for the order; without positions that is lost."""
    loss = {}
    for encoding in ("none", "diet-rel", "diet-abs"):
        log = (workshop.trained(encoding) / "log").read_text(encoding="utf-8")
        loss[encoding] = float(valid_losses(log)[UPDATES])
    assert loss["diet-rel"] < 0.6 * loss["none"]
    assert loss["diet-abs"] < 0.6 * loss["none"]


def test_commands_as_pip_installs_them_do_the_same(workshop: Workshop, tmp_path: Path) -> None:
    """The other tests run commands in forks: here is a script itself, in a new interpreter.

    fairseq-generate: ``test_installed_package.py``.
    """
    wrong = ("--arch", "diet_abs_tiny", "--position-rank", "0", "--max-tokens", "400", *USER_DIR)
    refused = run_installed("train", workshop.bin, *wrong, cwd=tmp_path)
    forked = workshop.run("train", workshop.bin, *wrong, cwd=tmp_path)
    assert (refused.status, forked.status) == (1, 1)
    last = [done.stderr.strip().split("\n")[-1] for done in (refused, forked)]
    assert last[0] == last[1]
    assert last[0].startswith("error: --position-rank 0")
