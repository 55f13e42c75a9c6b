"""``DietRobertaModel.from_pretrained``: checkpoints that fairseq-train wrote, used from Python."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.roberta.hub_interface import RobertaHubInterface
from torch import Tensor

from diet_mt.bert import tokenizer as tokenizers
from diet_mt.errors import UserError
from diet_mt.models._hub import DietRobertaHub
from diet_mt.models.diet_roberta import DietRobertaModel

from ..bert.made import write_tokenizer
from .encoders import HEAD, LONGEST, Encoders

ONE, OTHER = "The old woman reads the long letter.", "Our neighbour buys bread."
BOS, EOS = 0, 2


@cache
def pretrained(encoders: Encoders, **given: Any) -> DietRobertaHub:
    """Read only, as the next."""
    folder = encoders.pretrained("diet-rel")
    data = given.pop("data_name_or_path", str(encoders.vocabulary))
    return DietRobertaModel.from_pretrained(
        str(folder), "checkpoint_last.pt", data_name_or_path=data, **given
    )


@cache
def finetuned(encoders: Encoders, **given: Any) -> DietRobertaHub:
    """A model with segments and a head; its data folder holds no tokenizer."""
    folder = encoders.finetuned("diet-rel")
    own = {"tokenizer": str(encoders.vocabulary), **given}
    return DietRobertaModel.from_pretrained(
        str(folder), "checkpoint_last.pt", data_name_or_path=str(encoders.pairs), **own
    )


def test_it_is_fairseqs_interface_ready_for_use(encoders: Encoders) -> None:
    hub = pretrained(encoders)
    assert isinstance(hub, RobertaHubInterface)
    assert isinstance(hub.model, DietRobertaModel)
    assert not hub.training
    assert not hub.model.training


def test_encoded_text_is_what_the_data_holds(encoders: Encoders) -> None:
    """<s>, the pieces, </s>; and between two sentences another </s>."""
    hub = pretrained(encoders)
    splitter, words = tokenizers.load(encoders.vocabulary), hub.task.source_dictionary
    pieces = [[words.index(piece) for piece in splitter.pieces(text)] for text in (ONE, OTHER)]
    assert all(min(numbers) > 3 for numbers in pieces), "nothing unknown"
    assert hub.encode(ONE).tolist() == [BOS, *pieces[0], EOS]
    pair = [BOS, *pieces[0], EOS, EOS, *pieces[1], EOS]
    assert hub.encode(ONE, OTHER).tolist() == pair
    tokens, segments = hub.encode_pair(ONE, OTHER)
    assert tokens.tolist() == pair
    first = len(pieces[0]) + 2
    assert segments.tolist() == [0] * first + [1] * (len(pair) - first)
    assert hub.decode(hub.encode(ONE)).replace(" ", "") == ONE.lower().replace(" ", "")


def test_a_pair_is_encoded_as_the_task_reads_it(encoders: Encoders) -> None:
    """Tokens and segments of a row of the data, from its text."""
    hub = finetuned(encoders)
    hub.task.load_dataset("valid")
    dataset, splitter = hub.task.dataset("valid"), hub.bpe.tokenizer
    words = hub.task.source_dictionary
    for index in range(5):
        item = dataset[index]
        tokens = item["net_input.src_tokens"].tolist()
        cut = tokens.index(EOS)
        texts = [
            splitter.text([words[token] for token in part])
            for part in (tokens[1:cut], tokens[cut + 2 : -1])
        ]
        found, segments = hub.encode_pair(*texts)
        assert found.tolist() == tokens
        assert segments.tolist() == item["net_input.segment_ids"].tolist()


@torch.no_grad()
def test_features_and_hidden_states(encoders: Encoders) -> None:
    hub = finetuned(encoders)
    tokens, segments = hub.encode_pair(ONE, OTHER)
    features = hub.extract_features(tokens, segment_ids=segments)
    assert features.shape == (1, len(tokens), 32)
    layers = hub.extract_features(tokens, return_all_hiddens=True, segment_ids=segments)
    assert [tuple(states.shape) for states in layers] == [(1, len(tokens), 32)] * 3
    assert torch.equal(layers[-1], features)
    turned = hub.extract_features(tokens, segment_ids=1 - segments)
    assert not torch.allclose(turned, features)
    padded = torch.nn.functional.pad(tokens, (0, 3), value=1)
    more = torch.nn.functional.pad(segments, (0, 3))
    both = hub.extract_features(torch.stack([padded] * 2), segment_ids=torch.stack([more] * 2))
    assert both.shape == (2, len(tokens) + 3, 32)
    torch.testing.assert_close(both[1, : len(tokens)], features[0], rtol=0, atol=1e-5)


@torch.no_grad()
def test_predictions_equal_those_of_the_task(encoders: Encoders) -> None:
    hub = finetuned(encoders)
    hub.task.load_dataset("valid")
    dataset = hub.task.dataset("valid")
    batch = dataset.collater([dataset[index] for index in range(6)])["net_input"]
    expected, _ = hub.model(**batch, features_only=True, classification_head_name=HEAD)
    for row, logits in enumerate(expected):
        length = int(batch["src_lengths"][row])
        tokens, segments = (batch[name][row, :length] for name in ("src_tokens", "segment_ids"))
        found = hub.predict(HEAD, tokens, return_logits=True, segment_ids=segments)
        torch.testing.assert_close(found[0], logits, rtol=0, atol=1e-5)
        shares = hub.predict(HEAD, tokens, segment_ids=segments).exp()
        torch.testing.assert_close(shares[0], logits.softmax(-1), rtol=0, atol=1e-5)


def test_a_pair_without_segments_is_an_error_not_silence(encoders: Encoders) -> None:
    hub = finetuned(encoders)
    tokens, _ = hub.encode_pair(ONE, OTHER)
    for call in (hub.extract_features, lambda given: hub.predict(HEAD, given)):
        with pytest.raises(UserError, match="give segment_ids, which encode_pair makes"):
            call(tokens)
        call(hub.encode(ONE))  # a single sentence has one segment
    without = hub.encode(ONE, OTHER, no_separator=True)
    with pytest.raises(UserError, match="several sentences"):
        hub.extract_features(without)
    # A model without segments has nothing to miss.
    pretrained(encoders).extract_features(tokens)


def test_what_is_too_long_and_heads_that_are_not_there(encoders: Encoders) -> None:
    hub = pretrained(encoders)
    with pytest.raises(ValueError, match=f"{LONGEST + 1} tokens are more than .* {LONGEST}"):
        hub.extract_features(torch.full((LONGEST + 1,), 5))
    with pytest.raises(UserError, match=r"no head 'mnli'; it has none"):
        hub.predict("mnli", hub.encode(ONE))
    with pytest.raises(UserError, match=f"no head 'mnli'; it has {HEAD}"):
        finetuned(encoders).predict("mnli", hub.encode(ONE))


def masked(hub: DietRobertaHub, text: str) -> Tensor:
    """The tokens of ``text``, its word at position 2 hidden."""
    tokens = hub.encode(text)
    tokens[2] = hub.task.source_dictionary.index("<mask>")
    return tokens


def test_hidden_words_are_predicted(encoders: Encoders) -> None:
    """The words and shares that the model's own output has, best first."""
    hub = pretrained(encoders)
    tokens = masked(hub, ONE)
    words, shares = hub.predict_mask(tokens, topk=4)
    assert words.shape == shares.shape == (1, 4)
    with torch.no_grad():
        logits, _ = hub.model(tokens.unsqueeze(0))
    best = logits[0, 2].softmax(-1).topk(4)
    assert torch.equal(words[0], best.indices)
    torch.testing.assert_close(shares[0], best.values)
    two = tokens.clone()
    two[4] = two[2]
    assert hub.predict_mask(two, topk=3)[0].shape == (2, 3)
    with pytest.raises(UserError, match="nothing is masked"):
        hub.predict_mask(hub.encode(ONE))


def test_masks_in_a_text_are_filled(encoders: Encoders) -> None:
    hub = pretrained(encoders)
    text = "The old <mask> reads the long letter."
    found = hub.fill_mask(text, topk=9)
    assert len(found) == 9
    shares = [share for _, share, _ in found]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) < 1
    splitter = tokenizers.load(encoders.vocabulary)
    words = hub.predict_mask(
        torch.cat([hub.encode("The old")[:-1], torch.tensor([hub.task.mask_idx]),
                   hub.encode("reads the long letter.")[1:]]), topk=9,
    )[0][0]  # fmt: skip
    for (filled, _, word), number in zip(found, words.tolist(), strict=True):
        piece = hub.task.source_dictionary[number]
        glued = "" if not splitter.begins_word(piece) else " "
        assert filled == f"The old{glued}{word} reads the long letter."
        assert word == splitter.text([piece]).strip()


def test_a_mask_can_stand_in_a_pair(encoders: Encoders) -> None:
    hub = finetuned(encoders)
    text = "The old <mask> reads."
    alone, pair = hub.fill_mask(text), hub.fill_mask(text, second=OTHER)
    assert len(alone) == len(pair) == 5
    assert [share for _, share, _ in alone] != [share for _, share, _ in pair]
    assert all(filled.endswith(" reads.") for filled, _, _ in pair)


@pytest.mark.parametrize("text", ["no mask", "<mask> and <mask>"])
def test_one_mask_exactly(encoders: Encoders, text: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"{text!r}: write exactly one <mask>")):
        pretrained(encoders).fill_mask(text)


def test_the_tokenizer_of_the_data_folder_is_found_and_nothing_is_downloaded(
    encoders: Encoders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a download")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("fairseq.file_utils.load_archive_file", lambda name: _existing(name))
    expected = pretrained(encoders).encode(ONE)
    by_name = pretrained(encoders, bpe="diet_wordpiece", wordpiece_folder=str(encoders.vocabulary))
    assert torch.equal(by_name.encode(ONE), expected)
    with pytest.raises(UserError, match=r"no tokenizer in .*pairs or .*input0; give tokenizer="):
        finetuned(encoders, tokenizer=None)
    # Beside the dictionary of the first sentences it is found, too.
    shutil.copytree(encoders.pairs, tmp_path / "pairs")
    shutil.copy(encoders.vocabulary / "wordpiece.json", tmp_path / "pairs" / "input0")
    hub = DietRobertaModel.from_pretrained(
        str(encoders.finetuned("diet-rel")), "checkpoint_last.pt", str(tmp_path / "pairs")
    )
    assert torch.equal(hub.encode(ONE), expected)
    assert DietRobertaModel.hub_models() == {}


def _existing(name: str) -> str:
    assert Path(name).exists(), f"a download of {name}"
    return name


def test_a_data_folder_beside_the_checkpoint(encoders: Encoders, tmp_path: Path) -> None:
    """As in fairseq: "." is the folder of the checkpoint."""
    shutil.copy(encoders.pretrained("diet-rel") / "checkpoint_last.pt", tmp_path)
    for name in ("dict.txt", "wordpiece.json"):
        shutil.copy(encoders.vocabulary / name, tmp_path)
    hub = DietRobertaModel.from_pretrained(str(tmp_path), "checkpoint_last.pt")
    assert torch.equal(hub.encode(ONE), pretrained(encoders).encode(ONE))


def test_files_that_are_not_there(encoders: Encoders, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"checkpoint_best\.pt: there is no such file"):
        DietRobertaModel.from_pretrained(str(tmp_path))
    with pytest.raises(UserError, match="elsewhere: there is no such file"):
        pretrained(encoders, data_name_or_path=str(tmp_path / "elsewhere"))


def test_a_tokenizer_of_another_dictionary(encoders: Encoders, tmp_path: Path) -> None:
    """Every piece would be unknown without a word."""
    shutil.copy(encoders.vocabulary / "wordpiece.json", tmp_path)
    smaller = Dictionary.load(str(encoders.vocabulary / "dict.txt"))
    lines = [f"{smaller[number]} 1\n" for number in range(smaller.nspecial, len(smaller))]
    lines[40] = "other 1\n"
    (tmp_path / "dict.txt").write_text("".join(lines), encoding="utf-8")
    # Of the model's own data folder, but with another tokenizer, and the other way round.
    small = write_tokenizer(tmp_path / "small", tokenizers.WORDPIECE)
    with pytest.raises(UserError, match="pieces that are not, in this order, the"):
        pretrained(encoders, tokenizer=str(small))
    with pytest.raises(UserError, match="trained with another dictionary"):
        pretrained(encoders, data_name_or_path=str(tmp_path))


def test_arguments_that_cannot_be(encoders: Encoders) -> None:
    hub = pretrained(encoders)
    tokens = hub.encode(ONE)
    with pytest.raises(UserError, match="tokens must be a tensor, not str; encode"):
        hub.extract_features(ONE)
    with pytest.raises(UserError, match="segment_ids must be a tensor, not list"):
        hub.extract_features(tokens, segment_ids=[0] * len(tokens))
    with pytest.raises(UserError, match=f"{len(tokens) - 1} segment_ids for {len(tokens)} tokens"):
        hub.extract_features(tokens, segment_ids=torch.zeros(len(tokens) - 1))
    with pytest.raises(UserError, match="topk 100000: from 1 to"):
        hub.fill_mask("The <mask> reads.", topk=100000)
    with pytest.raises(UserError, match="and none in the second"):
        hub.fill_mask("The <mask> reads.", second="The <mask> reads.")
