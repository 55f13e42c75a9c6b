"""The options of the encodings: what they are called on the command line.

A scheme takes an option by having a field of its name, made with :func:`option`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict

# Field of a scheme -> flag.
FLAGS: Dict[str, str] = {
    "sharing": "--position-sharing",
    "rank": "--position-rank",
    "clip": "--position-clip",
    "values": "--position-values",
    "buckets": "--position-buckets",
    "max_distance": "--position-max-distance",
    "projected": "--linformer-k",
    "scaling": "--position-scaling",
    "scaling_factor": "--position-scaling-factor",
    "trained_length": "--position-trained-length",
    "kernel": "--position-kernel",
    "shift": "--position-shift",
    "global_shift": "--position-global-shift",
    "local_shift": "--position-local-shift",
    "global_scale": "--position-global-scale",
}


def option(name: str, default: Any, *, least: int = 1) -> Any:
    """The field for the option ``name`` of :data:`FLAGS`; ``least``: of whole numbers."""
    return dataclasses.field(default=default, metadata={"flag": FLAGS[name], "least": least})
