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

from diet_mt.bert import tokenizer as tokenizers
from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.models.hub import DietRobertaHub
from diet_mt.system.errors import UserError

from ..bert.made import write_tokenizer
from .encoders import HEAD, LONGEST, Encoders
from .runner import ROOT

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
        str(folder), "checkpoint_last.pt", data_name_or_path=str(encoders.task("RTE")), **own
    )


def test_encoded_text_is_what_the_data_holds(encoders: Encoders) -> None:
    """<s>, the pieces, </s>; and between two sentences another </s>, with their segments."""
    hub = finetuned(encoders)
    assert isinstance(hub, RobertaHubInterface)
    assert not hub.model.training
    splitter, words = hub.bpe.tokenizer, hub.task.source_dictionary
    pieces = [words.index(piece) for piece in splitter.pieces(ONE)]
    assert min(pieces) > 3, "nothing unknown"
    assert hub.encode(ONE).tolist() == [BOS, *pieces, EOS]
    assert hub.decode(hub.encode(ONE)).replace(" ", "") == ONE.lower().replace(" ", "")
    hub.task.load_dataset("valid")
    for index in range(5):
        item = hub.task.dataset("valid")[index]
        tokens = item["net_input.src_tokens"].tolist()
        cut = tokens.index(EOS)
        texts = [
            splitter.text([words[token] for token in part])
            for part in (tokens[1:cut], tokens[cut + 2 : -1])
        ]
        encoded, segments = hub.encode_pair(*texts)
        assert encoded.tolist() == hub.encode(*texts).tolist() == tokens
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
        predicted = hub.predict(HEAD, tokens, return_logits=True, segment_ids=segments)
        torch.testing.assert_close(predicted[0], logits, rtol=0, atol=1e-5)
        shares = hub.predict(HEAD, tokens, segment_ids=segments).exp()
        torch.testing.assert_close(shares[0], logits.softmax(-1), rtol=0, atol=1e-5)


@torch.no_grad()
def test_hidden_words_are_predicted(encoders: Encoders) -> None:
    """The words and shares that the model's own output has, best first."""
    hub = pretrained(encoders)
    tokens = hub.encode(ONE)
    tokens[2] = hub.task.mask_idx
    words, shares = hub.predict_mask(tokens, topk=4)
    assert words.shape == shares.shape == (1, 4)
    logits, _ = hub.model(tokens.unsqueeze(0))
    best = logits[0, 2].softmax(-1).topk(4)
    assert torch.equal(words[0], best.indices)
    torch.testing.assert_close(shares[0], best.values)
    tokens[4] = tokens[2]
    assert hub.predict_mask(tokens, topk=3)[0].shape == (2, 3)


def test_masks_in_a_text_are_filled(encoders: Encoders) -> None:
    hub = pretrained(encoders)
    text = "The old <mask> reads the long letter."
    filled = hub.fill_mask(text, topk=9)
    shares = [share for _, share, _ in filled]
    assert len(filled) == 9
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) < 1
    splitter = tokenizers.load(encoders.vocabulary)
    mask = torch.tensor([hub.task.mask_idx])
    parts = [hub.encode("The old")[:-1], mask, hub.encode("reads the long letter.")[1:]]
    words = hub.predict_mask(torch.cat(parts), topk=9)[0][0]
    for (whole, _, word), number in zip(filled, words.tolist(), strict=True):
        piece = hub.task.source_dictionary[number]
        glued = "" if not splitter.begins_word(piece) else " "
        assert whole == f"The old{glued}{word} reads the long letter."
        assert word == splitter.text([piece]).strip()
    pair = finetuned(encoders)
    alone, both = pair.fill_mask(text), pair.fill_mask(text, second=OTHER)
    assert [share for _, share, _ in alone] != [share for _, share, _ in both]


def test_the_tokenizer_is_that_of_the_data_folder(encoders: Encoders, tmp_path: Path) -> None:
    """And nothing is downloaded: tests/fairseq_patches/test_trust.py."""
    expected = pretrained(encoders).encode(ONE)
    by_name = pretrained(encoders, bpe="diet_wordpiece", wordpiece_folder=str(encoders.vocabulary))
    assert torch.equal(by_name.encode(ONE), expected)
    # Next to the dictionary of the first sentences, too.
    shutil.copytree(encoders.task("RTE"), tmp_path / "pairs")
    shutil.copy(encoders.vocabulary / "wordpiece.json", tmp_path / "pairs" / "input0")
    hub = DietRobertaModel.from_pretrained(
        str(encoders.finetuned("diet-rel")), "checkpoint_last.pt", str(tmp_path / "pairs")
    )
    assert torch.equal(hub.encode(ONE), expected)
    # As in fairseq: "." is the folder of the checkpoint.
    for file in (encoders.checkpoint("diet-rel"), encoders.vocabulary / "dict.txt"):
        shutil.copy(file, tmp_path)
    shutil.copy(encoders.vocabulary / "wordpiece.json", tmp_path)
    alone = DietRobertaModel.from_pretrained(str(tmp_path), "checkpoint_last.pt")
    assert torch.equal(alone.encode(ONE), expected)


def test_a_tokenizer_of_another_dictionary(encoders: Encoders, tmp_path: Path) -> None:
    """Every piece would be unknown without a word."""
    shutil.copy(encoders.vocabulary / "wordpiece.json", tmp_path)
    smaller = Dictionary.load(str(encoders.vocabulary / "dict.txt"))
    lines = [f"{smaller[number]} 1\n" for number in range(smaller.nspecial, len(smaller))]
    lines[40] = "other 1\n"
    (tmp_path / "dict.txt").write_text("".join(lines), encoding="utf-8")
    # Of the model's own data folder, but with another tokenizer, and the other way round.
    small = write_tokenizer(tmp_path / "small", tokenizers.WORDPIECE)
    with pytest.raises(UserError, match="pieces that are not"):
        pretrained(encoders, tokenizer=str(small))
    with pytest.raises(UserError, match="another dictionary"):
        pretrained(encoders, data_name_or_path=str(tmp_path))


def test_refusals(encoders: Encoders, tmp_path: Path) -> None:
    hub, fine = pretrained(encoders), finetuned(encoders)
    tokens, pair = hub.encode(ONE), hub.encode(ONE, OTHER)
    for datum, call in (
        ("segment_ids", lambda: fine.extract_features(pair)),
        ("segment_ids", lambda: fine.predict(HEAD, pair)),
        ("several sentences", lambda: fine.predict(HEAD, fine.encode(ONE, ONE, no_separator=True))),
        (f"{LONGEST + 1} tokens", lambda: hub.extract_features(torch.full((LONGEST + 1,), 5))),
        ("'mnli'", lambda: hub.predict("mnli", tokens)),
        (HEAD, lambda: fine.predict("mnli", tokens)),
        ("no mask", lambda: hub.fill_mask("no mask")),
        ("<mask> and <mask>", lambda: hub.fill_mask("<mask> and <mask>")),
        ("input0", lambda: finetuned(encoders, tokenizer=None)),
        ("elsewhere", lambda: pretrained(encoders, data_name_or_path=str(tmp_path / "elsewhere"))),
    ):
        with pytest.raises(ValueError, match=datum):
            call()
    # A single sentence has one segment; a model without segments has nothing to miss.
    fine.predict(HEAD, tokens)
    hub.extract_features(pair)


def test_the_page(
    encoders: Encoders,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The program of docs/encoders.md."""
    tuned = encoders.finetuned("diet-rel")
    for place, target in (
        ("data/glue/MNLI", encoders.task("RTE")),
        ("data/mlm.en/bin", encoders.vocabulary),
        ("checkpoints/mnli/checkpoint_best.pt", tuned / "checkpoint_last.pt"),
        ("checkpoints/mlm/checkpoint_best.pt", encoders.checkpoint("diet-rel")),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(target)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "encoders.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    page: dict[str, Any] = {}
    exec(program, page)
    assert page["features"].shape == (1, len(page["tokens"]), 32)
    assert page["shares"].shape == (1, 2)
    filled = re.findall(r"^0\.\d{3}  The old ?\S+ reads", capsys.readouterr().out, re.MULTILINE)
    assert len(filled) == 3
