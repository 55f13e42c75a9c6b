"""Exported models: log-probabilities of every encoding in any sizes, and tokens of searches."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from diet_mt.decoding.generator import BeamSearchGenerator
from diet_mt.evaluation.checkpoint import load_with_task
from diet_mt.export import ctranslate2, programs
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import NAMES
from diet_mt.system.errors import UserError

from ..checkpoints import write_checkpoint
from ..commands.runner import ROOT
from ..models.test_search import talkative
from ..processes import called
from ..toy import (
    EOS,
    FIRST_WORD,
    PAD,
    PRE_NORM,
    WORDS,
    ToyTask,
    build,
    collate,
    dictionary,
    each_encoding,
    sources,
    targets,
)

PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
SMALL = {"encoder_layers": 1, "decoder_layers": 2}
# Of float32, over some layers.
ROUNDING = 1e-4
SENTENCES = sources([2 + 7 * number % 10 for number in range(200)])
LENPEN = 0.6

Run = Callable[..., Sequence[Any]]


def example() -> dict[str, Any]:
    """The names of the example of the page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config


def loaded(folder: Path, name: str) -> Run:
    """An exported program as a function of tensors."""
    if (folder / f"{name}.pt2").exists():
        run: Run = torch.export.load(folder / f"{name}.pt2").module()
        return run
    session = example()["load"](folder, name)
    return lambda *inputs: [
        torch.from_numpy(each) for each in session(*(x.numpy() for x in inputs))
    ]


@torch.no_grad()
def assert_agrees(
    folder: Path, model: DietTransformerModel, lengths: Sequence[int], beam: int, steps: int
) -> None:
    """In every step of hypotheses with random words and parents, the log-probabilities are those of
    a pass over the whole sentences.
    """
    encoder, decoder = (loaded(folder, name) for name in ("encoder", "decoder"))
    source, count = collate(sources(lengths)), len(lengths)
    padding, *caches = encoder(source)
    past = [torch.zeros(count, 1, heads, 0, size) for heads, size in config_of(folder)["past"]]
    history, parents = torch.full((count, 1, 1), EOS), torch.zeros(count, 1).long()
    for _ in range(steps):
        logs, *past = decoder(history[..., -1], parents, padding, *caches, *past)
        rows = source.repeat_interleave(history.size(1), dim=0)
        out = model(rows, None, history.flatten(0, 1))
        expected = model.get_normalized_probs(out, log_probs=True)[:, -1]
        torch.testing.assert_close(logs.flatten(0, 1), expected, rtol=0, atol=ROUNDING)
        parents = torch.randint(history.size(1), (count, beam))
        word = torch.randint(FIRST_WORD, FIRST_WORD + WORDS, (count, beam, 1))
        before = history.gather(1, parents[..., None].expand(-1, -1, history.size(2)))
        history = torch.cat([before, word], dim=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torch", "onnx"])
@each_encoding
def test_log_probabilities(encoding: str, sharing: str | None, kind: str, tmp_path: Path) -> None:
    if kind == "onnx":
        need_onnx()
    model = build(encoding, sharing, **SMALL).float().eval()
    programs.save(model, ToyTask(), kind, tmp_path)
    for lengths, beam, steps in (([7, 3, 5], 4, 9), ([11], 1, 4), ([1, 1, 2, 1], 2, 2)):
        assert_agrees(tmp_path, model, lengths, beam, steps)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [
    {"position_randomized": 100},
    {"position_in": "encoder,decoder", "position_input": "sinusoidal", **PRE_NORM},
    {"layernorm_embedding": True, "share_decoder_input_output_embed": True},
    {"decoder_output_dim": 10, "decoder_input_dim": 6},
    {"adaptive_softmax_cutoff": "9,20"},
], ids=str)  # fmt: skip
def test_other_models(changes: dict[str, Any], tmp_path: Path) -> None:
    model = build("diet-rel", **SMALL, **changes).float().eval()
    programs.save(model, ToyTask(), "torch", tmp_path)
    assert_agrees(tmp_path, model, [7, 3, 5], 4, 4)


@pytest.mark.slow
@each_encoding
@torch.no_grad()
def test_direct_export(encoding: str, sharing: str | None) -> None:
    """``torch.export.export`` of model and encoder themselves, for any numbers and lengths."""
    model = build(encoding, sharing, **SMALL).float().eval()
    batch, source, target = map(torch.export.Dim, ("batch", "source", "target"))
    sizes = {0: batch, 1: source}, {0: batch}, {0: batch, 1: target}

    def inputs(*lengths: int) -> tuple[torch.Tensor, ...]:
        tokens = collate(sources(lengths), "left")
        return tokens, tokens.ne(PAD).sum(1), collate(targets(lengths[::-1]))

    for module, count, outputs in ((model, 3, 0), (model.encoder, 2, "encoder_out")):
        example, others = inputs(7, 3, 5)[:count], inputs(2, 4, 6, 6, 1)[:count]
        program = torch.export.export(module, example, dynamic_shapes=sizes[:count]).module()
        actual, expected = (run(*others)[outputs] for run in (program, module))
        torch.testing.assert_close(actual, expected, rtol=0, atol=ROUNDING)


def need_onnx() -> None:
    for name in ("onnxscript", "onnxruntime"):
        pytest.importorskip(name)


def searched(
    model: DietTransformerModel, beam: int, longest: int, **options: Any
) -> list[list[dict[str, Any]]]:
    """The hypotheses of all sentences by this package's search."""
    options |= {"beam_size": beam, "max_len_b": longest, "len_penalty": LENPEN}
    generator = BeamSearchGenerator([model], ToyTask().target_dictionary, **options)
    hypotheses: list[list[dict[str, Any]]] = []
    for start in range(0, len(SENTENCES), 50):
        batch = {"net_input": {"src_tokens": collate(SENTENCES[start : start + 50])}}
        hypotheses += generator.generate([model], batch)
    return hypotheses


@pytest.mark.slow
@each_encoding
def test_tokens_with_onnx_runtime(encoding: str, sharing: str | None, tmp_path: Path) -> None:
    """By the example of the page, greedily and with beam 5."""
    need_onnx()
    names, longest = example(), 8
    for seed in itertools.count(1):
        model = talkative(encoding, sharing, seed, **SMALL).float()
        expected = {
            beam: [each[0]["tokens"].tolist()[:-1] for each in searched(model, beam, longest)]
            for beam in (1, 5)
        }
        if all(len({len(row) for row in words}) > 2 for words in expected.values()):
            break
    programs.save(model, ToyTask(), "onnx", tmp_path)
    runs = [names["load"](tmp_path, name) for name in ("encoder", "decoder")]
    options = {"lenpen": LENPEN, "longest": longest}
    for beam, words in expected.items():
        actual = []
        for start in range(0, len(SENTENCES), 50):
            rows = [row[:-1] for row in SENTENCES[start : start + 50]]
            actual += names["translate"](*runs, config_of(tmp_path), rows, beam, **options)
        assert actual == words


# What CTranslate2's format has, as (encoding, options).
SELF = {"position_in": "encoder,decoder"}
HELD: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("none", "sinusoidal", "shape", "cape", "learned", "concat")},
    **{name: (name, {}) for name in ("rotary", "alibi", "sandwich")},
    "randomized": ("learned", {"position_randomized": 100}),
    "shaw": ("shaw", {**SELF, "position_values": True}),
    "shaw, keys alone": ("shaw", {**SELF, "position_values": False}),
    "t5": ("t5", {**SELF, "position_sharing": "layer-wise"}),
    "t5 in the encoder": ("t5", {"position_in": "encoder", "position_sharing": "layer-wise"}),
    "diet-rel": ("diet-rel", {**SELF, "position_sharing": "layer-wise"}),
    "kerple": ("kerple", {"position_sharing": "layer-wise"}),
    "yarn": ("rotary", {"position_scaling": "yarn", "position_scaling_factor": 4.0,
                        "position_trained_length": 8}),
    "pre-norm": ("sinusoidal", {**PRE_NORM, "activation_fn": "gelu", "layernorm_embedding": True}),
    "shared": ("concat", {"share_decoder_input_output_embed": True}),
    "scale": ("rotary", {"attention_scale": "model", "position_fraction": 0.5,
                         "position_base": 500.0}),
}  # fmt: skip


def concise(end: float, *case: Any, **changes: Any) -> DietTransformerModel:
    """A model that ends its sentences the earlier the larger ``end`` is, with a probability of
    padding below e^-40: CTranslate2 excludes padding before the softmax, fairseq behind it.
    """
    model = talkative(*case, **changes)
    decoder = model.decoder
    norm = decoder.layers[-1].final_layer_norm if decoder.layer_norm is None else decoder.layer_norm
    with torch.no_grad():
        norm.weight[0], norm.bias[0] = 0.0, 1.0  # feature 0 is 1
        if decoder.project_out_dim is not None:
            decoder.project_out_dim.weight[0] = torch.eye(norm.weight.numel())[0]
        decoder.output_projection.weight[PAD, 0] = -60.0
        decoder.output_projection.weight[EOS, 0] = end
    return model.float()


@pytest.mark.parametrize("name", HELD, ids=lambda name: name.replace(" ", "-"))
def test_tokens_with_ctranslate2(name: str, tmp_path: Path) -> None:
    """Greedily and with beam 5, of sentences that end before the longest length, where this search
    ends them and CTranslate2's does not.
    """
    runtime, (encoding, options) = pytest.importorskip("ctranslate2"), HELD[name]
    changes, longest = {"position_sharing": None, **options, "max_target_positions": 32}, 20
    sharing = changes.pop("position_sharing")
    words = ToyTask().target_dictionary
    for rate in (3.0, 6.0, 9.0, 12.0):
        model = concise(rate, encoding, sharing, **changes)
        expected = {beam: searched(model, beam, longest, min_len=0) for beam in (5, 1)}
        ends = {
            beam: [max(len(one["tokens"]) for one in own) for own in hypotheses]
            for beam, hypotheses in expected.items()
        }
        if all(sum(end <= longest for end in own) > 100 for own in ends.values()):
            break
    ctranslate2.save(model, ToyTask(), tmp_path)
    translator = runtime.Translator(str(tmp_path), compute_type="float32")
    texts = [[words[token] for token in row[:-1]] for row in SENTENCES]
    for beam, hypotheses in expected.items():
        results = translator.translate_batch(
            texts,
            beam_size=beam,
            length_penalty=LENPEN,
            min_decoding_length=0,
            max_decoding_length=longest + 1,
            return_end_token=True,
            return_scores=True,
        )
        ended = [end <= longest for end in ends[beam]]
        assert sum(ended) > 100
        for own, result in itertools.compress(zip(hypotheses, results, strict=True), ended):
            best = own[0]
            assert [words.index(word) for word in result.hypotheses[0]] == best["tokens"].tolist()
            assert result.scores[0] == pytest.approx(float(best["score"]), abs=ROUNDING)
    assert len(set(ends[5])) > 1


# Encodings of which CTranslate2's format has no form with their own defaults.
NOT_HELD = sorted(set(NAMES) - {encoding for encoding, options in HELD.values() if not options})


@pytest.mark.parametrize("encoding", NOT_HELD)
def test_positions_outside_of_the_format_of_ctranslate2(encoding: str, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    with pytest.raises(UserError, match=encoding):
        ctranslate2.save(build(encoding), ToyTask(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("changes", "datum"), [
    ({"scale_heads": True}, "c_attn"),
    ({"activation_fn": "tanh"}, "tanh"),
    ({"position_in": "encoder", "position_input": "learned"}, "input=learned"),
    ({"position_layers": "1:"}, "layers"),
], ids=str)  # fmt: skip
def test_parts_outside_of_the_format_of_ctranslate2(
    changes: dict[str, Any], datum: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=datum):
        ctranslate2.save(build("alibi", **changes), ToyTask(), tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, run, out = tmp_path / "bin", tmp_path / "run", tmp_path / "new" / "out"
    data.mkdir()
    for language in ("en", "de"):
        dictionary().save(str(data / f"dict.{language}.txt"))
    sizes = ["--encoder-layers", "1", "--decoder-layers", "1"]
    write_checkpoint(data, run, "-s", "en", "-t", "de", *sizes)
    words = ["export", run, "--out", out, "--format"]
    assert called(*words, "torch") == 0
    files = {"config.json", "dict.source.txt", "dict.target.txt", "encoder.pt2", "decoder.pt2"}
    assert {path.name for path in out.iterdir()} == files
    assert (out / "dict.source.txt").read_text() == (data / "dict.en.txt").read_text()
    model, _, _ = load_with_task(run / "checkpoint_best.pt", data)
    assert_agrees(out, model, [7, 3, 5], 4, 4)
    capsys.readouterr()
    assert called(*words, "torch") == 2
    assert str(out) in capsys.readouterr().err
    # Its translations begin with the symbol of a language.
    task = ["--task", "translation_multi_simple_epoch", "--langs", "en,de", "--lang-pairs", "en-de"]
    write_checkpoint(data, tmp_path / "several", *task, *sizes)
    several = ["export", tmp_path / "several", "--out", tmp_path / "new" / "several"]
    assert called(*several, "--format", "torch") == 2
    assert "translation_multi_simple_epoch" in capsys.readouterr().err
    pytest.importorskip("ctranslate2")  # what fails leaves nothing
    words[3] = tmp_path / "new" / "other"
    assert called(*words, "ctranslate2") == 2
    assert "diet-rel" in capsys.readouterr().err
    assert [path.name for path in out.parent.iterdir()] == ["out"]
