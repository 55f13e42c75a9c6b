"""What a user may get wrong in training and evaluating: one line, status 2, nothing written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from diet_mt.cli.main import main

pytestmark = pytest.mark.hostile

TRAIN = "train data/multi30k.en-de diet_rel_tiny --recipe multi30k --save-dir new"
WMT18 = "train data/wmt18.de-en none_base --recipe table4 --save-dir new"
MLM = "pretrain data/mlm diet_rel --recipe mlm --save-dir new"
COLA = "finetune glue/CoLA pre.pt --recipe glue --save-dir new"
EVALUATE = "evaluate data/multi30k.en-de run"

WRONG = [
    ("train", "the following arguments are required: data, arch, --recipe, --save-dir"),
    (TRAIN.replace("--recipe", "--recpie"), "unknown option --recpie; did you mean --recipe?"),
    (TRAIN.replace("diet_rel_", "diet_rell_"), "diet_rell_tiny; did you mean diet_rel_tiny?"),
    (TRAIN.replace("rel_tiny", "rel"), "diet_rel: its size is missing; choose diet_rel_tiny, diet"),
    (TRAIN.replace("rel_tiny", "rel_huge"), "unknown architecture diet_rel_huge; did you mean"),
    (TRAIN.replace("multi30k --", "multi30 --"), "unknown recipe multi30; did you mean multi30k?"),
    (TRAIN.replace("multi30k --", "mine.yaml --"), "mine.yaml: no such recipe"),
    (TRAIN.replace("multi30k --", "zzz --"), "unknown recipe zzz; choose from bitext, "),
    (TRAIN.replace("data/multi30k.en-de", "data/gone"), "data/gone: no such folder; prepare it"),
    (TRAIN.replace("data/multi30k.en-de", "glue"), "glue: holds no data made by fairseq-prep"),
    (TRAIN.replace("data/multi30k.en-de", "data/mlm"), "bin: no sentence pairs made by fairseq"),
    (f"{TRAIN} --droput 0.3", "unknown option --droput; did you mean --dropout?"),
    (f"{TRAIN} --position-encodng diet-abs", "did you mean --position-encoding?"),
    (f"{TRAIN} --position-encoding diet-rell", "--position-encoding diet-rell: unknown; choose"),
    (f"{TRAIN} --position-rank 8", "--position-rank 8: diet-rel has no such option"),
    (f"{TRAIN} --optimizer adm", "--optimizer: unknown value adm; did you mean adam?"),
    (f"{TRAIN} --lr -1", "--lr -1: expected 0 or more"),
    (f"{TRAIN} --lr quick", "--lr quick: expected a number"),
    (f"{TRAIN} --lr nan", "--lr nan: expected 0 or more"),
    (f"{TRAIN} --dropout 1.5", "--dropout 1.5: expected 0 to 1"),
    (f"{TRAIN} --max-epoch 0", "--max-epoch 0: expected a whole number of at least 1"),
    (f"{TRAIN} --max-update ten", "--max-update ten: expected a whole number"),
    (f"{TRAIN} --clip-norm x", "--clip-norm x: expected a number"),
    (f"{TRAIN} --adam-betas 0.9", "--adam-betas '0.9': expected two numbers below 1"),
    (f"{TRAIN} --task translation_lev --encoder-learned-pos", "use --position-encoding learned"),
    (f"{TRAIN} --share-all-embeddings yes", "unexpected argument 'yes'"),
    (f"{TRAIN} --dropout", "--dropout: expected a number"),
    (f"{TRAIN} --seed one", "argument --seed: one: expected a whole number from 0 to"),
    (f"{TRAIN} --seed -1", "argument --seed: -1: expected a whole number from 0 to"),
    (f"{TRAIN} --max-tokens-per-device 9", "the recipe shares no update; give --max-tokens"),
    (TRAIN.replace(" diet_rel", " roberta_diet_rel"), "an encoder alone; see diet-mt pretrain"),
    (f"{TRAIN} --bf16", "--bf16: give --precision"),
    (f"{TRAIN} --cpu", "--cpu: give --gpus 0"),
    (f"{TRAIN} --arch none_tiny", "--arch: it is the second argument"),
    (f"{TRAIN} --user-dir x", "--user-dir: the project's own is used"),
    (f"{TRAIN} --distributed-world-size 2", "give --gpus, --nodes, --node-rank and --master"),
    (f"{TRAIN} --precision fp8", "unknown value fp8; choose from auto, fp32, fp16, bf16"),
    (f"{TRAIN} --gpus eight", "--gpus eight: give a number or auto"),
    (f"{TRAIN} --gpus 8 --precision auto", "8 GPUs asked for, 0 found here"),
    (f"{TRAIN} --nodes 2", "--nodes: give --master HOST:PORT of machine 0, too"),
    (f"{WMT18} --max-tokens 9", "--max-tokens: give --tokens-per-update and --max-tokens-per-"),
    (f"{WMT18} --tokens-per-update 0", "--tokens-per-update: 0: expected a whole number"),
    (f"{WMT18} --gpus 99 --precision fp32", "--gpus 99: this machine has "),
    (f"{WMT18} --nodes 2 --master foo", "--master foo: give HOST:PORT"),
    (f"{WMT18} --nodes 2 --node-rank 2 --master a:1", "--node-rank 2 of 2 machines: they"),
    (f"{TRAIN} --node-rank 5", "--node-rank 5 of 1 machines: they count from 0"),
    (f"{TRAIN} --update-freq 0", "--update-freq 0: expected a whole number of at least 1"),
    (f"{TRAIN} --update-freq 2,0", "--update-freq 0: expected a whole number of at least 1"),
    (f"{TRAIN} --weight-decay -1", "--weight-decay -1: expected 0 or more"),
    (f"{TRAIN} --source-lang fr", "fr --target-lang de: data/multi30k.en-de/bin holds en-de"),
    (f"{TRAIN} --source-lang de", "give both of these, in either order"),
    (f"{TRAIN} --source-lang en --target-lang en", "--source-lang en --target-lang en: data/"),
    (f"{TRAIN} --train-subset nope", "--train-subset nope: no such part of data/multi30k.en-de/"),
    (f"{TRAIN} --valid-subset nope", "--valid-subset nope: no such part of data/multi30k.en-de/"),
    (f"{TRAIN} --restore-file gone.pt", "--restore-file gone.pt: no such checkpoint"),
    (TRAIN.replace("new", "''"), "argument --save-dir: empty; give a path"),
    (f"{TRAIN} --seed 99999999999999999999", "expected a whole number from 0 to 2147483647"),
    (MLM.replace("diet_rel", "diet_rell"), "unknown encoding diet_rell; did you mean diet_rel?"),
    (MLM.replace("data/mlm", "data/multi30k.en-de"), "bin: sentence pairs, not plain text; see"),
    (f"{MLM} --size huge", "unknown size huge; choose from base, small, tiny"),
    (f"{MLM} --tokens-per-sample 64", "data/mlm/bin has sentences of up to 128 pieces"),
    (f"{MLM} --tokens-per-sample 600", "longer than the 512 positions of the model"),
    (f"{MLM} --warmup 2", "--warmup 2: expected 0 to 1"),
    (COLA.replace("pre.pt", "gone.pt"), "gone.pt: no such checkpoint; train first"),
    (COLA.replace("glue/CoLA", "glue"), "glue: no task made by diet-mt prepare glue, xnli or qa"),
    (f"{COLA} --task Cola", "unknown task Cola; did you mean CoLA?"),
    (f"{COLA} --system learned", "pretrained with diet-rel, not learned"),
    (f"{COLA} --segments both", "unknown value both; choose from none, input, per-head"),
    (f"{EVALUATE}s", "runs: no such folder of checkpoints; train first"),
    (EVALUATE, "run/checkpoint_best.pt: no such checkpoint; train first"),
    (f"{EVALUATE} --checkpoint ../x.pt", "--checkpoint ../x.pt: give the name of a file in run"),
    (f"{EVALUATE} --beam 0", "--beam: 0: expected a whole number of at least 1"),
    (f"{EVALUATE} --lenpen nan", "--lenpen: nan: expected a number"),
    ("evaluate data/multi30k.en-de pre.pt --checkpoint x", "pre.pt is one already"),
    (f"{EVALUATE} --length-penalty google", "unknown value google; choose from fairseq, gnmt"),
    (f"{EVALUATE} --results ''", "argument --results: empty; give a path"),
    (f"{EVALUATE} --source text", "--source and --reference: give both"),
    (f"{EVALUATE} --subset valid --test-set wmt18", "--subset, --source and --test-set: give one"),
    ("evaluate data/multi30k.en-de pre.pt --gen-subset test", "--gen-subset: give --subset"),
    (
        "evaluate data/multi30k.en-de pre.pt --nbset 2",
        "unknown option --nbset; did you mean --nb",
    ),
]


@pytest.mark.parametrize(("command", "complaint"), WRONG)
def test_it_is_one_line(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    complaint: str,
) -> None:
    monkeypatch.chdir(place)
    (place / "run").mkdir(exist_ok=True)
    (place / "run" / "done").touch()
    monkeypatch.setattr("diet_mt.training.devices.visible_gpus", list)
    before = sorted(place.rglob("*"))
    capsys.readouterr()
    try:
        status = main(shlex.split(command))
    except SystemExit as end:
        status = int(end.code or 0)
    said = capsys.readouterr()
    assert complaint in said.err
    assert (status, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith("error: ")
    assert len(said.err) < 300
    assert sorted(place.rglob("*")) == before
