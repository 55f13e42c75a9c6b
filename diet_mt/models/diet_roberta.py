"""The model ``diet_roberta``: fairseq's RoBERTa with a choice of position and segment encodings."""

import logging
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from fairseq import hub_utils
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.roberta.model import RobertaEncoder, RobertaLMHead, RobertaModel
from fairseq.modules.transformer_sentence_encoder import init_bert_params
from fairseq.tasks.sentence_prediction import SentencePredictionTask
from torch import Tensor, nn

from ..layers.encoder import DietSentenceEncoder
from ..layers.stack import PaddedEmbedding
from ..nn.batch import gather_columns
from ..nn.linear import use_fast_products
from ..positions.base import INIT_STD
from ..system.errors import UserError
from .architectures import register_roberta_architectures
from .hub import DietRobertaHub, find_pieces
from .roberta_options import DietRobertaConfig, plain_options, sentence_config, write_length
from .signature import (
    SEGMENT_SIGNATURE,
    add_missing_segments,
    check_dictionary,
    dictionary_checksum,
    signature_tensor,
    take_positions,
)

logger = logging.getLogger(__name__)


class DietLMHead(RobertaLMHead):
    """fairseq's head, for token embeddings that may be narrower than the model (``concat``)."""

    def __init__(
        self, embed_dim: int, output_dim: int, activation_fn: str, weight: Optional[Tensor] = None
    ) -> None:
        token_dim = embed_dim if weight is None else weight.size(1)
        super().__init__(token_dim, output_dim, activation_fn, weight)
        if token_dim != embed_dim:
            self.dense = nn.Linear(embed_dim, token_dim)


class SpanHead(nn.Module):
    """Linear layer for the start and end logits of answers (Devlin et al. 2018, section 4.2)."""

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(embed_dim, 2)
        nn.init.normal_(self.out.weight, std=INIT_STD)
        nn.init.zeros_(self.out.bias)

    def forward(self, features: Tensor) -> Tensor:
        """Start and end logits (B, S, 2) of features (B, S, E)."""
        logits: Tensor = self.out(features)
        return logits


class DietRobertaEncoder(RobertaEncoder):
    """fairseq's RoBERTa encoder around :class:`DietSentenceEncoder`, with segments."""

    def build_embedding(self, vocab_size: int, embedding_dim: int, padding_idx: int) -> nn.Module:
        width = self.args.config.encoding.token_dim(embedding_dim)
        words = super().build_embedding(vocab_size, width, padding_idx)
        return words if width == embedding_dim else PaddedEmbedding.around(words, embedding_dim)

    def build_encoder(
        self, args: Any, dictionary: Any, embed_tokens: nn.Embedding
    ) -> DietSentenceEncoder:
        encoder = DietSentenceEncoder(args.config, dictionary, embed_tokens)
        encoder.apply(init_bert_params)
        if encoder.embed_positions is not None:
            encoder.embed_positions.draw(INIT_STD)
        return encoder

    def build_lm_head(
        self, embed_dim: int, output_dim: int, activation_fn: str, weight: Optional[Tensor]
    ) -> DietLMHead:
        return DietLMHead(embed_dim, output_dim, activation_fn, weight)

    def forward(
        self,
        src_tokens: Tensor,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        masked_tokens: Optional[Tensor] = None,
        segment_ids: Optional[Tensor] = None,
        **unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Logits (B, S, V) of ``src_tokens`` (B, S), and a dictionary with ``inner_states``.

        With ``features_only``, features (B, S, E); with ``masked_tokens`` (B, S), logits (masked,
        V) of these tokens. ``segment_ids``: (B, S), None for one segment.
        """
        x, extra = self.extract_features(src_tokens, return_all_hiddens, segment_ids=segment_ids)
        if not features_only:
            x = self.output_layer(x, masked_tokens=masked_tokens)
        return x, extra

    def extract_features(
        self,
        src_tokens: Tensor,
        return_all_hiddens: bool = False,
        segment_ids: Optional[Tensor] = None,
        token_embeddings: Optional[Tensor] = None,
        **unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Features (B, S, E), aligned with ``src_tokens`` (B, S), and ``inner_states``."""
        out = self.sentence_encoder(
            src_tokens,
            return_all_hiddens=return_all_hiddens,
            token_embeddings=token_embeddings,
            segment_ids=segment_ids,
        )
        columns = out["source_columns"][0].argsort(1) if out["source_columns"] else None

        def aligned(states: Tensor) -> Tensor:
            """States (S, B, E), right-padded -> (B, S, E), padded like ``src_tokens``."""
            states = states.transpose(0, 1)
            return states if columns is None else gather_columns(states, columns)

        states = [aligned(x).transpose(0, 1) for x in out["encoder_states"]]
        return aligned(out["encoder_out"][0]), {
            "inner_states": states if return_all_hiddens else None
        }


@register_model("diet_roberta", dataclass=DietRobertaConfig)
class DietRobertaModel(RobertaModel):
    """fairseq's RoBERTa with a position encoding, inside attention or at the input, and segments.

    Weights of another position encoding, dictionary or segment encoding are an error. ``span_head``
    is not in ``classification_heads``, because fairseq expects a dense layer and a projection in
    each of these when it loads a checkpoint.
    """

    def __init__(self, args: Any, encoder: DietRobertaEncoder) -> None:
        super().__init__(args, encoder)
        self.span_head: Optional[SpanHead] = None
        self.signature, *self.continues = args.config.signatures()
        self.register_buffer("position_signature", signature_tensor(self.signature))
        self.checksum = dictionary_checksum(encoder.dictionary)
        self.register_buffer("dictionary_signature", signature_tensor(self.checksum))
        self.register_buffer(SEGMENT_SIGNATURE, signature_tensor(args.config.segment_encoding))

    @classmethod
    def hub_models(cls) -> Dict[str, str]:
        """No models to download."""
        return {}

    @property
    def has_segments(self) -> bool:
        """Whether the model has a segment encoding."""
        encoder = self.encoder.sentence_encoder
        return encoder.segment_input is not None or encoder.segment_positions is not None

    @classmethod
    def from_pretrained(
        cls,
        model_name_or_path: str,
        checkpoint_file: str = "checkpoint_best.pt",
        data_name_or_path: str = ".",
        bpe: Optional[str] = None,
        tokenizer: Optional[str] = None,
        **more: Any,
    ) -> DietRobertaHub:
        """The model of a checkpoint with its dictionary, tokenizer and heads, in evaluation mode.

        Args:
            model_name_or_path: folder of the checkpoint.
            data_name_or_path: data folder with the dictionaries; as in fairseq, a path that begins
                with a dot is relative to the folder of the checkpoint.
            bpe: name of a bpe of fairseq; None: ``tokenizer``.
            tokenizer: folder of the tokenizer; None: the data folder.
            more: options of the checkpoint to override.
        """
        data = Path(data_name_or_path)
        if data_name_or_path[:1] == ".":
            data = Path(model_name_or_path, data)
        for path in (Path(model_name_or_path, checkpoint_file), data):
            if not path.exists():  # fairseq would take the name for an address
                raise UserError(f"{path}: there is no such file or folder")
        if bpe is not None:
            more["bpe"] = bpe
        loaded = hub_utils.from_pretrained(
            model_name_or_path,
            checkpoint_file,
            str(data.resolve()),
            load_checkpoint_heads=True,
            **more,
        )
        pieces = None
        if bpe is None:
            loaded["args"].bpe = None  # ignore the checkpoint's: fairseq may download it
            # In the data of sentence pairs, input0 has the first sentences and their dictionary.
            folders = [tokenizer] if tokenizer else [str(data), str(data / "input0")]
            pieces = find_pieces(folders, loaded["task"].source_dictionary)
        hub = DietRobertaHub(loaded["args"], loaded["task"], loaded["models"][0], pieces)
        return hub.eval()

    @staticmethod
    def add_args(parser: Any) -> None:
        gen_parser_from_dataclass(parser, DietRobertaConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "DietRobertaModel":
        """The model of the flat options ``cfg``. Raises :class:`UserError` for invalid ones."""
        options = plain_options(cfg, task)
        write_length(cfg, options.max_source_positions)
        # Built first, as fairseq's encoder sets max_source_positions to max_positions.
        options.config = sentence_config(options)
        model = cls(options, DietRobertaEncoder(options, task.source_dictionary))
        use_fast_products(model)
        if model.has_segments and type(task) is SentencePredictionTask:
            logger.warning(
                "the task sentence_prediction has no segments, so all tokens are of the first; for "
                "pairs, give --task diet_sentence_prediction"
            )
        return model

    def register_span_head(self) -> None:
        """Adds a newly initialized span head."""
        self.span_head = SpanHead(self.args.encoder_embed_dim)

    def forward(
        self, src_tokens: Tensor, *args: Any, use_span_head: bool = False, **kwargs: Any
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """fairseq's forward pass; with ``use_span_head``, start and end logits (B, S, 2).

        The head is a part of ``forward`` so that wrappers for several devices see its use.
        """
        if not use_span_head:
            out: Tuple[Tensor, Dict[str, Any]] = super().forward(src_tokens, *args, **kwargs)
            return out
        assert self.span_head is not None
        features, extra = super().forward(src_tokens, *args, **{**kwargs, "features_only": True})
        return self.span_head(features), extra

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Checks the weights of a checkpoint, and adds segment tables of zeros if it has none.

        Raises :class:`UserError` for another position encoding, dictionary, segment encoding or
        size of a table.
        """
        super().upgrade_state_dict_named(state_dict, name)
        prefix = f"{name}." if name else ""
        self._take_span_head(state_dict, f"{prefix}span_head.")
        own = take_positions(self, state_dict, prefix)
        signature = f"{prefix}dictionary_signature"
        check_dictionary(state_dict.get(signature), self.checksum)
        state_dict.setdefault(signature, self.dictionary_signature)
        add_missing_segments(state_dict, own)

    def _take_span_head(self, state_dict: Dict[str, Tensor], prefix: str) -> None:
        """Adds the model's new span head to a checkpoint without one.

        For a model without one, drops that of the checkpoint, as fairseq does with other heads.
        """
        theirs = [key for key in state_dict if key.startswith(prefix)]
        if self.span_head is None:
            if theirs:
                logger.warning("span head of the checkpoint not loaded: this task has none")
            for key in theirs:
                del state_dict[key]
        elif not theirs:
            logger.info("span head newly initialized: the checkpoint has none")
            for key, value in self.span_head.state_dict().items():
                state_dict[prefix + key] = value


register_roberta_architectures("diet_roberta")
