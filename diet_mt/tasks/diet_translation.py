"""The task ``diet_translation``: fairseq's ``translation`` with a length penalty and int8."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from ..decoding.generator import GENERATORS, own_generator
from ..decoding.length_penalty import GnmtGenerator, GnmtGeneratorWithAlignment
from ..system.errors import UserError


@dataclass
class DietTranslationConfig(TranslationConfig):
    """Options of fairseq's ``translation``, and of the length penalty and decoding in int8."""

    length_penalty: str = field(
        default="fairseq",
        metadata={
            "help": "divide scores by length^lenpen (fairseq) or ((5 + length) / 6)^lenpen (gnmt), "
            "in decoding and in --eval-bleu"
        },
    )
    int8: bool = field(
        default=False,
        metadata={
            "help": "decode with linear layers in 8-bit integers on a CPU: faster, at about the "
            "same BLEU (fairseq-generate, fairseq-interactive)"
        },
    )


@register_task("diet_translation", dataclass=DietTranslationConfig)
class DietTranslationTask(TranslationTask):
    """fairseq's ``translation`` with these options; checkpoints are interchangeable."""

    def __init__(self, cfg: DietTranslationConfig, src_dict: Any, tgt_dict: Any) -> None:
        if cfg.length_penalty not in GENERATORS:
            raise UserError(
                f"--length-penalty {cfg.length_penalty}: choose from {', '.join(GENERATORS)}"
            )
        super().__init__(cfg, src_dict, tgt_dict)

    def build_generator(
        self,
        models: Any,
        args: Any,
        seq_gen_cls: Optional[type] = None,
        extra_gen_cls_kwargs: Optional[Dict[str, Any]] = None,
        **more: Any,
    ) -> Any:
        """The generator for search options ``args``, with the task's length penalty."""
        extra = dict(extra_gen_cls_kwargs or {})
        if self.cfg.length_penalty != "fairseq":
            if seq_gen_cls is not None:
                raise UserError(f"--length-penalty gnmt: not for {seq_gen_cls.__name__}")
            if getattr(args, "score_reference", False):
                raise UserError(
                    "--score-reference: has no length penalty; leave out --length-penalty gnmt"
                )
            seq_gen_cls = own_generator(models, args, "gnmt", {**extra, **more}) or GnmtGenerator
            if getattr(args, "print_alignment", None):
                seq_gen_cls = GnmtGeneratorWithAlignment
                extra["print_alignment"] = args.print_alignment
        return super().build_generator(
            models, args, seq_gen_cls=seq_gen_cls, extra_gen_cls_kwargs=extra, **more
        )
