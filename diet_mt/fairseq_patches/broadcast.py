"""A training on several GPUs can be continued.

The first process reads a checkpoint and sends it to the others. fairseq packs it as a checkpoint
again, which since torch 2.6 the others refuse to unpack, because of the options in it. That refusal
is for files from elsewhere; what comes here has been read safely by a process of the same training.
Replaced: ``fairseq.distributed.utils._broadcast_object_slow``, by a function of torch.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from fairseq.distributed import utils


def broadcast_pickled(obj: Any, src_rank: int, group: Any, dist_device: torch.device) -> Any:
    """What the process ``src_rank`` calls this with, in every process of the training."""
    box = [obj]
    torch.distributed.broadcast_object_list(box, src=src_rank, group=group, device=dist_device)
    return box[0]


utils._broadcast_object_slow = broadcast_pickled
