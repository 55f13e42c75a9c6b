"""Parts of fairseq with which our architectures train: 5 updates, then 8, the mean, decoding.

``python -m tests.commands.test_parts`` prints all rows as a table.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import fairseq
import pytest
import sentencepiece
from fairseq import hub_utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode
from fairseq.tasks import TASK_REGISTRY

from ..processes import called
from .runner import PLUGIN, Runner
from .workshop import BATCHES, IN_ONE, SIZES, Workshop, state

COMMON = ("--user-dir", PLUGIN, "--cpu", *BATCHES)
OPTIMIZER = ("--optimizer", "adam", "--lr", 0.001)
RECIPE = (*IN_ONE, *OPTIMIZER, "--max-tokens", 400, "--no-epoch-checkpoints")
SIZE = " ".join(
    f"--{side}-layers 1 --{side}-embed-dim 16 --{side}-ffn-embed-dim 16 --{side}-attention-heads 2"
    for side in ("encoder", "decoder")
)
OURS = f"--arch diet_rel_tiny {SIZE}"
MULTILINGUAL = f"--arch multilingual_diet_rel_tiny {SIZE}"
ENCODER = f"--arch roberta_diet_abs_tiny {SIZE.partition('--decoder')[0]}"
SMOOTHED = "--label-smoothing 0.1 --criterion label_smoothed_cross_entropy"
PAIRS = "--lang-pairs src-tgt,tgt-src"
NOISE = "--tokens-per-sample 32 --mask 0.3 --replace-length 1 --rotate 0"
CLASSES = "--num-classes 2 --init-token 0 --separator-token 2"
MASKED = "--criterion masked_lm"
WIDTH = "--encoder-embed-dim 16 --decoder-embed-dim 16"


class Row(NamedTuple):
    """Options: of the training alone; of training and decoding; of decoding alone."""

    training: str
    both: str = ""
    decoding: str = ""

    @property
    def data(self) -> str:
        """The method of :class:`Parts` that makes it."""
        if "sentence" in self.both:
            return "labelled"
        if "language_modeling" in self.training:
            return "one_sided"
        alone = "denoising" in self.both or "masked_lm" in self.both or "back" in self.both
        return "monolingual" if alone else "bilingual"

    @property
    def command(self) -> str:
        """Of fairseq, that decodes; where nothing is decoded, the loss."""
        scored = ("sentence", "masked_lm --c", "translation_lev")
        edits = "nat_loss" in self.training
        return "validate" if any(map(self.both.__contains__, scored)) > edits else "generate"


ROWS = {
    # Each optimizer, schedule, bpe, tokenizer and scorer once, on the way.
    "criterion cross_entropy": Row(
        f"{OURS} --criterion cross_entropy --optimizer adafactor --lr-scheduler cosine "
        "--warmup-updates 2 --tokenizer moses -s src -t tgt",
        decoding="--scoring chrf",
    ),
    "criterion label_smoothed_cross_entropy": Row(
        f"{OURS} {SMOOTHED} --lr-scheduler inverse_sqrt --tokenizer space "
        "--bpe hf_byte_bpe --bpe-vocab {out}/vocab.json --bpe-merges {out}/merges.txt",
        decoding="--scoring sacrebleu",
    ),
    "criterion label_smoothed_cross_entropy_with_rdrop": Row(
        f"{OURS} {SMOOTHED}_with_rdrop --rdrop-alpha 1 --optimizer adagrad --lr-scheduler fixed "
        "--bpe subword_nmt --bpe-codes {out}/codes",
        decoding="--scoring bleu",
    ),
    "criterion label_smoothed_cross_entropy_with_alignment": Row(
        f"{OURS} {SMOOTHED}_with_alignment --optimizer adamax --lr-scheduler polynomial_decay "
        "--total-num-update 20 --bpe sentencepiece --sentencepiece-model {out}/spm.model"
    ),
    "criterion adaptive_loss": Row(
        f"{OURS} --criterion adaptive_loss --adaptive-softmax-cutoff 6 --ddp-backend legacy_ddp "
        "--optimizer nag --lr-scheduler triangular --max-lr 0.01 --lr-period-updates 10 "
        "--bpe byte_bpe --sentencepiece-model-path {out}/spm.model"
    ),
    "task translation": Row(
        f"{OURS} {SMOOTHED} --optimizer sgd --lr-scheduler step --bpe gpt2 "
        "--gpt2-encoder-json {out}/vocab.json --gpt2-vocab-bpe {out}/merges.txt "
        '--eval-bleu --eval-bleu-detok moses --eval-bleu-args {"max_len_b":9}'
    ),
    "task translation_multi_simple_epoch": Row(
        f"{OURS} {SMOOTHED} --optimizer adadelta --lr-scheduler reduce_lr_on_plateau",
        f"--task translation_multi_simple_epoch {PAIRS} --encoder-langtok src --decoder-langtok",
        "-s src -t tgt",
    ),
    "task translation_multi_simple_epoch, language tokens as ends": Row(
        f"{OURS} {SMOOTHED} --lr-scheduler tri_stage --phase-ratio [0.1,0.4,0.5]",
        f"--task translation_multi_simple_epoch {PAIRS} --encoder-langtok tgt --decoder-langtok "
        "--lang-tok-replacing-bos-eos",
        "-s tgt -t src",
    ),
    "task multilingual_translation": Row(
        f"{MULTILINGUAL} {SMOOTHED}", f"--task multilingual_translation {PAIRS}", "-s src -t tgt"
    ),
    "task multilingual_translation, all shared": Row(
        f"{MULTILINGUAL} {SMOOTHED} --share-encoders --share-decoders --share-all-embeddings",
        f"--task multilingual_translation {PAIRS} --encoder-langtok tgt --decoder-langtok",
        "-s tgt -t src",
    ),
    "task online_backtranslation": Row(
        f"{OURS} {SMOOTHED} --share-all-embeddings",
        "--task online_backtranslation --mono-langs src,tgt --valid-lang-pairs src-tgt",
    ),
    "task translation_lev": Row(
        f"{OURS} {SMOOTHED} --lr-scheduler manual --update2lr {{'1-9':0.001}}",
        "--task translation_lev",
    ),
    "task denoising": Row(f"{OURS} {SMOOTHED}", f"--task denoising {NOISE}", "--gen-subset valid"),
    "task multilingual_denoising": Row(
        f"{OURS} {SMOOTHED}",
        f"--task multilingual_denoising --langs src,tgt {NOISE}",
        "--gen-subset valid",
    ),
    "task span_masked_lm": Row(
        f"{OURS} {SMOOTHED}", "--task span_masked_lm --tokens-per-sample 32", "--gen-subset valid"
    ),
    **{
        f"task {name}": Row(f"{ENCODER} --tokens-per-sample 32", f"--task {name} {MASKED}")
        for name in ("masked_lm", "multilingual_masked_lm")
    },
    **{
        f"criterion {name}": Row(
            f"{ENCODER} --max-positions 64", f"--task {task} --criterion {name} {CLASSES}"
        )
        for name, task in {
            "sentence_prediction": "sentence_prediction",
            "sentence_prediction_adapters": "sentence_prediction",
            "sentence_ranking": "sentence_ranking",
        }.items()
    },
    "model roberta": Row(
        f"--arch roberta {SIZE.partition('--decoder')[0]} --tokens-per-sample 32",
        f"--task masked_lm {MASKED}",
    ),
    "model transformer_lm": Row(
        f"--arch transformer_lm --decoder{SIZE.partition('--decoder')[2]} "
        "--task language_modeling --tokens-per-sample 32",
        decoding="--lm-path {mean} --lm-weight 0.5",
    ),
    "model cmlm_transformer": Row(
        f"--arch cmlm_transformer {SIZE} --criterion nat_loss "
        "--noise full_mask --share-all-embeddings --apply-bert-init",
        "--task translation_lev",
    ),
    # Beside one of ours, in an ensemble.
    **{
        f"model {arch}": Row(f"--arch {arch} {size} --criterion cross_entropy")
        for arch, size in {
            "transformer": SIZE,
            "transformer_align": f"--alignment-layer 0 --alignment-heads 1 {SIZE}",
            "bart_base": SIZE,
            "lightconv": "--encoder-conv-dim 16 --decoder-conv-dim 16 --encoder-glu 0 "
            f"--decoder-glu 0 --encoder-kernel-size-list [3] --decoder-kernel-size-list [3] {SIZE}",
            "lstm": "--encoder-hidden-size 16 --decoder-hidden-size 16 "
            f"--decoder-out-embed-dim 16 {WIDTH}",
            "fconv": "--encoder-layers [(16,3)] --decoder-layers [(16,3)] "
            f"--decoder-out-embed-dim 16 {WIDTH}",
        }.items()
    },
}


class Parts:
    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop

    @property
    def bilingual(self) -> Path:
        return self.workshop.bin

    @property
    def monolingual(self) -> Path:
        """Of either language, and both as if they were one; with the pairs to validate on."""

        def make(folder: Path) -> None:
            for file in self.bilingual.glob("*.src-tgt.*"):
                part, _, language, kind = file.name.split(".")
                (folder / language).mkdir(exist_ok=True)
                for copy in (folder / language, folder):
                    shutil.copy(file, copy / f"{part}.{kind}")
                shutil.copy(file, folder)
            words = (self.bilingual / "dict.src.txt").read_text(encoding="utf-8")
            (folder / "dict.txt").write_text(f"{words}__src__ 1\n__tgt__ 1\n", encoding="utf-8")

        return self.workshop.once("monolingual", make)

    @property
    def labelled(self) -> Path:
        """Sentences ``input0`` to ``input2``, and labels as text."""

        def make(folder: Path) -> None:
            for name, language in (("input0", "src"), ("input1", "tgt"), ("input2", "src")):
                shutil.copytree(self.monolingual / language, folder / name)
                shutil.copy(self.monolingual / "dict.txt", folder / name)
            (folder / "label").mkdir()
            (folder / "label" / "dict.txt").write_text("0 1\n1 1\n", encoding="utf-8")
            for part in ("train", "valid"):
                labels = "".join(f"{number % 2}\n" for number in range(SIZES[part]))
                for name in (part, f"{part}.label"):  # of sentence_prediction, and of ranking
                    (folder / "label" / name).write_text(labels, encoding="utf-8")

        return self.workshop.once("labelled", make)

    @property
    def one_sided(self) -> Path:
        """The pairs, and their targets for a language model."""

        def make(folder: Path) -> None:
            shutil.copytree(self.bilingual, folder, dirs_exist_ok=True)
            for file in self.bilingual.glob("*tgt.*"):
                shutil.copy(file, folder / re.sub(r"(\.src-tgt)?\.tgt\.", ".", file.name))

        return self.workshop.once("one_sided", make)

    def _write_pieces(self, folder: Path) -> None:
        """A file for each kind of bpe."""
        pieces = [*bytes_to_unicode().values(), "ba"]
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        for name in ("merges.txt", "codes"):
            (folder / name).write_text("#version: 0.2\nb a\n", encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(self.workshop.corpus / "train.src"),
            model_prefix=str(folder / "spm"),
            vocab_size=30,
            minloglevel=2,
        )

    def run(self, name: str, out: Path) -> Iterator[str]:
        """The outputs of training, resuming, averaging and decoding; an AssertionError where one
        fails.
        """
        self._write_pieces(out)
        row, run = ROWS[name], self.workshop.run
        data = getattr(self, row.data)
        options = f"{row.training} {row.both}".replace("{out}", str(out)).split()
        train = (data, COMMON, RECIPE, options, "--save-dir", out, "--max-update")
        yield run("train", *train, 5).ok().stdout
        yield run("train", *train, 8).ok().stdout
        best, last, mean = (
            out / f"{name}.pt" for name in ("checkpoint_best", "checkpoint_last", "mean")
        )
        assert called("average", best, last, "--out", mean) == 0
        yield ""
        path = str(mean)
        if not ("diet" in row.training or row.both):
            ours = str(self.workshop.checkpoint("diet-rel"))
            path = ours if "--lm-path" in row.decoding else f"{path}:{ours}"
        decoding = f"{row.both or '--task translation'} {row.decoding} --path {path}"
        # Models that have learnt next to nothing find no end.
        decoding += " --max-len-b 9" if row.command == "generate" else ""
        words = (data, COMMON, "--max-tokens", 400, decoding.replace("{mean}", str(mean)).split())
        # Our own search serves several languages, too.
        own = {"DIET_MT_SEARCH": "own"} if PAIRS in row.both else {}
        yield run(row.command, *words, env=own).ok().stdout


@pytest.fixture
def parts(workshop: Workshop) -> Parts:
    return Parts(workshop)


# Stock fairseq lacks two; and there, whatever the model, options of a task conflict with the
# model's, and a fused layer is refused by today's torch.
KNOWN = {*TASK_REGISTRY, *CRITERION_REGISTRY}
HERE = [name for name in ROWS if name.startswith("model") or re.split("[ ,]", name)[1] in KNOWN]
BROKEN = {"task denoising", "task multilingual_denoising"} | {
    f"model {name}" for name in ("transformer", "transformer_align", "cmlm_transformer")
}
STOCK = fairseq.__version__ == "0.12.2"


# Slow: fairseq's own architectures, and tasks that differ from another row's in its data alone.
SLOW = {
    f"model {name}" for name in ("transformer_align", "bart_base", "lightconv", "lstm", "fconv")
}
SLOW |= {f"task {name}" for name in ("multilingual_denoising", "multilingual_masked_lm")}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in HERE
        if not (STOCK and name in BROKEN)
    ],
)
def test_it_trains_resumes_averages_and_decodes(name: str, parts: Parts, tmp_path: Path) -> None:
    _, resumed, _, decoded = parts.run(name, tmp_path)
    assert "@ 5 updates" in resumed
    assert state(tmp_path, "mean.pt")["averaged"][-1]["updates"] == 8
    row = ROWS[name]
    if row.command == "generate":  # noised sentences become blocks
        sentences = decoded.count("\nS-") if "--gen" in row.decoding else SIZES["test"]
        assert decoded.count("\nH-") == sentences > 0
    if "--bpe" in row.training or "--tok" in row.training:
        # fairseq's Python interface, with the tokenizer and bpe that the checkpoint names.
        data = str(getattr(parts, row.data))
        loaded = hub_utils.from_pretrained(str(tmp_path), "checkpoint_last.pt", data)
        hub = hub_utils.GeneratorHubInterface(loaded["args"], loaded["task"], loaded["models"])
        assert len(hub.encode("bal der")) > 1


def test_embeddings_of_a_shared_width_are_needed(parts: Parts, tmp_path: Path) -> None:
    words = MULTILINGUAL.replace("diet_rel", "concat").split(), SMOOTHED.split()
    task = f"--task multilingual_translation {PAIRS} --save-dir {tmp_path}".split()
    done = parts.workshop.run("train", parts.bilingual, *COMMON, *RECIPE, *words, *task)
    assert done.status == 1
    assert "--position-encoding concat" in done.stderr


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    runner = Runner(folder)
    parts = Parts(Workshop(folder, runner))
    print("| part | trains | resumes | averages | decodes |\n| --- | --- | --- | --- | --- |")
    for name in HERE:
        out = folder / name.replace(" ", "_")
        out.mkdir()
        shown = []
        with contextlib.suppress(AssertionError), contextlib.redirect_stdout(sys.stderr):
            for _ in parts.run(name, out):
                shown += ["loss" if len(shown) == 3 and ROWS[name].command == "validate" else "yes"]
        shown += ["no"] * (4 - len(shown))
        print(f"| {name} | {' | '.join(shown)} |", flush=True)
    runner.close()


if __name__ == "__main__":
    main()
