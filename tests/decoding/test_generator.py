"""Who decodes: our search where it serves, fairseq's otherwise, and either where it is forced."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from diet_mt.decoding.generator import (
    VARIABLE,
    BeamSearchGenerator,
    GnmtBeamSearchGenerator,
    _parts,
)
from diet_mt.decoding.length_penalty import GnmtGenerator
from diet_mt.layers.decoder import DietDecoder
from diet_mt.system.errors import UserError
from diet_mt.tasks.diet_translation import DietTranslationConfig, DietTranslationTask

from ..toy import EOS, build, collate, dictionary, sources


def generator(
    models: Any = None,
    penalty: str | None = None,
    extra: Any = None,
    allowed: Any = None,
    **options: Any,
) -> Any:
    symbols = dictionary()
    if penalty is None:
        task = TranslationTask(TranslationConfig(), symbols, symbols)
    else:
        config = DietTranslationConfig(length_penalty=penalty)
        task = DietTranslationTask(config, symbols, symbols)
    models = [build("diet-rel")] if models is None else models
    args = Namespace(**{"beam": 4} | options)
    given = {} if allowed is None else {"prefix_allowed_tokens_fn": allowed}
    return task.build_generator(models, args, extra_gen_cls_kwargs=extra, **given)


PLAIN: list[dict[str, Any]] = [
    {},
    {"lenpen": 0.6, "max_len_a": 1.2, "min_len": 2, "unkpen": 1.0, "unnormalized": True},
    {"no_repeat_ngram_size": 3, "prefix_size": 2, "nbest": 4},
    {"sampling": False, "diverse_beam_groups": -1, "constraints": None, "temperature": 1.0},
]
OTHER: list[dict[str, Any]] = [
    {"sampling": True},
    {"diverse_beam_groups": 2},
    {"diversity_rate": 0.5},
    {"constraints": "ordered"},
    {"match_source_len": True},
    {"temperature": 0.7},
    {"no_repeat_ngram_size": 1},
    {"print_alignment": "hard"},
    {"beam": 22},
]


def test_plain_beam_search_is_ours() -> None:
    for options in PLAIN:
        for penalty in (None, "fairseq"):
            assert type(generator(penalty=penalty, **options)) is BeamSearchGenerator
        assert type(generator(penalty="gnmt", **options)) is GnmtBeamSearchGenerator


@pytest.mark.parametrize("options", OTHER, ids=str)
def test_anything_else_is_fairseqs(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = generator(**options)
    assert type(actual) in (SequenceGenerator, SequenceGeneratorWithAlignment)
    assert not isinstance(generator(penalty="gnmt", **options), BeamSearchGenerator)
    monkeypatch.setenv(VARIABLE, "own")
    with pytest.raises(UserError, match="DIET_MT_SEARCH=own"):
        generator(**options)


def test_ensembles_and_other_models_are_fairseqs() -> None:
    pair = [build("diet-rel"), build("diet-abs")]
    assert type(generator(pair)) is SequenceGenerator
    small = build("diet-rel", adaptive_softmax_cutoff="10,20")
    assert type(generator([small])) is SequenceGenerator
    hooked, dropping = build("diet-rel"), build("diet-rel", dropout=0.1)
    hooked.decoder.register_forward_hook(lambda module, given, out: out)
    assert type(generator([hooked])) is SequenceGenerator
    dropping.decoder.layers[0].dropout_module.apply_during_inference = True
    assert type(generator([dropping])) is SequenceGenerator


@pytest.mark.parametrize(
    "name", ["forward", "extract_features", "output_layer", "get_normalized_probs"]
)
def test_a_decoder_of_ones_own_is_fairseqs(name: str) -> None:
    def scaled(self: Any, *given: Any, **more: Any) -> Any:
        actual = getattr(super(kind, self), name)(*given, **more)
        return 2 * actual if isinstance(actual, Tensor) else actual

    model = build("diet-rel")
    kind = type("Scaled", (DietDecoder,), {name: scaled})
    model.decoder.__class__ = kind
    assert type(generator([model])) is SequenceGenerator


def test_a_language_model_beside_is_fairseqs() -> None:
    other = build("none")
    assert type(generator(extra={"lm_model": other})) is SequenceGenerator
    assert type(generator(extra={"lm_model": None, "lm_weight": 0.3})) is BeamSearchGenerator


@pytest.mark.parametrize(
    ("penalty", "kind"),
    [(None, SequenceGenerator), ("fairseq", SequenceGenerator), ("gnmt", GnmtGenerator)],
)
def test_allowed_words_are_fairseqs(
    penalty: str | None, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = build("diet-rel").eval(), collate(sources((5, 3)))
    actual = generator([model], penalty, allowed=lambda sentence, words: [EOS, 7, 9])
    assert type(actual) is kind
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(1)}}
    for hypotheses in actual.generate([model], sample):
        assert {word for one in hypotheses for word in one["tokens"].tolist()} <= {EOS, 7, 9}
    monkeypatch.setenv(VARIABLE, "own")
    with pytest.raises(UserError, match="prefix_allowed_tokens_fn"):
        generator(penalty=penalty, allowed=lambda sentence, words: [EOS])


def test_either_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "fairseq")
    assert type(generator()) is SequenceGenerator
    assert type(generator(penalty="gnmt")) is GnmtGenerator
    monkeypatch.setenv(VARIABLE, "own")
    assert type(generator()) is BeamSearchGenerator
    monkeypatch.setenv(VARIABLE, "")
    assert type(generator()) is BeamSearchGenerator
    monkeypatch.setenv(VARIABLE, "ours")
    with pytest.raises(UserError, match="DIET_MT_SEARCH=ours"):
        generator()


def test_alignments_get_their_attention_weights() -> None:
    model = build("diet-rel")
    generator([model], print_alignment="hard")
    assert model.decoder.need_attn
    generator([model])
    assert not model.decoder.need_attn


@pytest.mark.parametrize(("device", "searches"), [("cpu", 3), ("meta", 1)])
def test_threads_share_the_sentences_on_a_cpu_alone(
    device: str, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``meta`` stands for whatever else there is."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert len(_parts(torch.empty(5, 2, dtype=torch.long, device=device))) == searches
