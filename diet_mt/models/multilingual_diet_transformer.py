"""``multilingual_diet_transformer``: one of our Transformers for each pair of languages of ``--task
multilingual_translation``, with the languages that share encoders, decoders or embeddings.
"""

from typing import Any

from fairseq.models import register_model
from fairseq.models.multilingual_transformer import MultilingualTransformerModel
from torch import nn

from ..errors import UserError
from ..layers.decoder import DietDecoder
from ..layers.encoder import DietEncoder
from ..nn.linear import use_fast_products
from ._architectures import register_architectures
from ._options import NestedConfig, nested_config
from .diet_transformer import DietTransformerModel


@register_model("multilingual_diet_transformer")
class MultilingualDietModel(MultilingualTransformerModel):
    """Builds fairseq's model of many pairs; each pair in it is a :class:`DietTransformerModel`."""

    @staticmethod
    def add_args(parser: Any) -> None:
        MultilingualTransformerModel.add_args(parser)
        DietTransformerModel.add_args(parser)

    @classmethod
    def build_model(cls, args: Any, task: Any) -> MultilingualTransformerModel:
        """Raises UserError for invalid options."""
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


register_architectures("multilingual_diet_transformer", "multilingual_")
