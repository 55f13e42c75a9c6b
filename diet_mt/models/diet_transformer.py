"""The translation Transformers, ``diet_transformer`` and ``multilingual_diet_transformer``."""

import os
from typing import Any, Dict, Optional

from fairseq import hub_utils
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.multilingual_transformer import MultilingualTransformerModel
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor, nn

from ..layers.decoder import DietDecoder
from ..layers.encoder import DietEncoder
from ..layers.int8 import quantize_
from ..layers.stack import PaddedEmbedding
from ..nn.linear import use_fast_products
from ..system.errors import UserError
from .architectures import register_architectures
from .hub import TranslationHub
from .options import DietTransformerConfig, NestedConfig, nested_config
from .signature import adapt_positions, signature_tensor, take_positions


@register_model("diet_transformer", dataclass=DietTransformerConfig)
class DietTransformerModel(TransformerModelBase):
    """fairseq's Transformer with a position encoding inside attention, at the input, or both.

    Weights of another encoding are an error (``position_signature``). ``adapts`` is set while a
    training with a new optimizer loads weights; their positions may then be changed.
    """

    adapts = False

    def __init__(self, cfg: NestedConfig, encoder: DietEncoder, decoder: DietDecoder) -> None:
        super().__init__(cfg, encoder, decoder)
        self.signature, *self.continues = cfg.signatures()
        self.register_buffer("position_signature", signature_tensor(self.signature))

    @classmethod
    def from_pretrained(
        cls,
        model_name_or_path: str,
        checkpoint_file: Optional[str] = None,
        data_name_or_path: str = ".",
        bpe: Optional[str] = None,
        **options: Any,
    ) -> TranslationHub:
        """A trained model, or an ensemble of several, for translating and scoring.

        Args:
            model_name_or_path: a folder, a checkpoint, or an archive of a folder.
            checkpoint_file: name in the folder, several separated by colons; None: model.pt, but
                checkpoint_best.pt in a folder without it.
            data_name_or_path: folder with the dictionaries; as in fairseq, a path that begins with
                a dot is relative to the folder of the checkpoint.
            bpe: name of a bpe of fairseq; None: that of the checkpoint, or the subword model that
                ``diet-mt prepare`` writes to the data folder; empty: text is already split.
            options: options of the checkpoint to override, such as ``tokenizer="moses"``.
        """
        name = str(model_name_or_path)
        if checkpoint_file is None:
            is_run = os.path.isdir(name) and not os.path.exists(os.path.join(name, "model.pt"))
            checkpoint_file = "checkpoint_best.pt" if is_run else "model.pt"
        if bpe:
            options["bpe"] = bpe
        loaded = hub_utils.from_pretrained(name, checkpoint_file, str(data_name_or_path), **options)
        return TranslationHub(loaded["args"], loaded["task"], loaded["models"], split=bpe == "")

    @classmethod
    def add_args(cls, parser: Any) -> None:
        gen_parser_from_dataclass(parser, DietTransformerConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "DietTransformerModel":
        """The model of the flat options ``cfg``. Raises :class:`UserError` for invalid ones."""
        model = super().build_model(nested_config(cfg, NestedConfig), task)
        use_fast_products(model)
        return model

    @classmethod
    def build_embedding(
        cls, cfg: NestedConfig, dictionary: Any, embed_dim: int, path: Optional[str] = None
    ) -> nn.Embedding:
        """fairseq's embedding, narrower if the encoding takes a part of the width (``concat``)."""
        width = cfg.encoding.token_dim(embed_dim)
        words: nn.Embedding = super().build_embedding(cfg, dictionary, width, path)
        return words if width == embed_dim else PaddedEmbedding.around(words, embed_dim)

    @classmethod
    def build_encoder(
        cls, cfg: NestedConfig, src_dict: Any, embed_tokens: nn.Embedding
    ) -> DietEncoder:
        return DietEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(
        cls, cfg: NestedConfig, tgt_dict: Any, embed_tokens: nn.Embedding
    ) -> DietDecoder:
        return DietDecoder(cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention)

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Checks and, if allowed, adapts positions of a checkpoint; otherwise raises UserError."""
        super().upgrade_state_dict_named(state_dict, name)
        prefix = f"{name}." if name else ""
        adapt_positions(self, state_dict, prefix)
        take_positions(self, state_dict, prefix)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """fairseq's hook before decoding; with ``--int8``, quantizes the linear layers."""
        super().prepare_for_inference_(cfg)
        if getattr(cfg.task, "int8", False):
            quantize_(self)


@register_model("multilingual_diet_transformer")
class MultilingualDietModel(MultilingualTransformerModel):
    """A :class:`DietTransformerModel` per language pair, for ``--task multilingual_translation``.

    Pairs may share encoders, decoders and embeddings (``--share-*``).
    """

    @staticmethod
    def add_args(parser: Any) -> None:
        MultilingualTransformerModel.add_args(parser)
        DietTransformerModel.add_args(parser)

    @classmethod
    def build_model(cls, args: Any, task: Any) -> MultilingualTransformerModel:
        model: MultilingualTransformerModel = super().build_model(args, task)
        cfg = nested_config(args, NestedConfig)
        for pair, each in model.models.items():
            model.models[pair] = DietTransformerModel(cfg, each.encoder, each.decoder)
        use_fast_products(model)
        return model

    @classmethod
    def _get_module_class(
        cls, is_encoder: bool, args: Any, words: Any, embed_tokens: nn.Embedding, langs: Any
    ) -> nn.Module:
        cfg = nested_config(args, NestedConfig)
        if cfg.encoding.token_dim(embed_tokens.embedding_dim) != embed_tokens.embedding_dim:
            raise UserError(
                f"--position-encoding {cfg.position_encoding}: not with multilingual_translation, "
                "which makes embeddings of the full width; use translation_multi_simple_epoch"
            )
        return (DietEncoder if is_encoder else DietDecoder)(cfg, words, embed_tokens)


register_architectures("diet_transformer")
register_architectures("multilingual_diet_transformer", "multilingual_")
