"""``diet_transformer``: fairseq's encoder-decoder Transformer with positions where
``--position-encoding`` puts them.
"""

from typing import Any, Dict, Optional

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor, nn

from ..layers.decoder import DietDecoder
from ..layers.encoder import DietEncoder
from ..layers.stack import PaddedEmbedding
from ..nn.linear import use_fast_products
from ._architectures import register_architectures
from ._options import DietTransformerConfig, NestedConfig, nested_config
from ._signature import signature_tensor, take_positions


@register_model("diet_transformer", dataclass=DietTransformerConfig)
class DietTransformerModel(TransformerModelBase):
    """fairseq's Transformer with one position encoding, in the kinds of attention where it acts
    (``--position-in``), at the input, or both.

    The checkpoint carries a signature of the encoding (``position_signature``): two encodings can
    have the same parameters and still compute different things, and weights trained for one are
    refused by the other.
    """

    def __init__(self, cfg: NestedConfig, encoder: DietEncoder, decoder: DietDecoder) -> None:
        super().__init__(cfg, encoder, decoder)
        self.signature, *self.continues = cfg.signatures()
        self.register_buffer("position_signature", signature_tensor(self.signature))

    @classmethod
    def add_args(cls, parser: Any) -> None:
        gen_parser_from_dataclass(parser, DietTransformerConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "DietTransformerModel":
        """``cfg``: the flat options. Raises UserError for invalid options."""
        model = super().build_model(nested_config(cfg, NestedConfig), task)
        use_fast_products(model)
        return model

    @classmethod
    def build_embedding(
        cls, cfg: NestedConfig, dictionary: Any, embed_dim: int, path: Optional[str] = None
    ) -> nn.Embedding:
        """fairseq's, or a narrower one where the encoding stands beside the words."""
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
        """Refuses weights of another encoding or of other table sizes (UserError); otherwise as in
        fairseq.
        """
        super().upgrade_state_dict_named(state_dict, name)
        take_positions(self, state_dict, f"{name}." if name else "")


register_architectures("diet_transformer")
