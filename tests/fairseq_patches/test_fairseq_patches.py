"""The folder of patches: all are listed, described and in place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils
from fairseq.data import data_utils
from fairseq.dataclass import utils as dataclass_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.modules.quantization.scalar import ops
from fairseq.modules.quantization.scalar import utils as scalar_utils
from fairseq.tasks import FairseqTask

from diet_mt import fairseq_patches

# Where importing the package has put something of ours. pytest has a hook of its own in the place
# of sys.excepthook while tests run.
PLACES: list[tuple[Any, str]] = [
    (data_utils, "batch_by_size"),
    (FairseqTask, "filter_indices_by_size"),
    (FairseqTask, "get_batch_iterator"),
    (dataclass_utils, "override_module_args"),
    (distributed_utils, "_broadcast_object_slow"),
    (checkpoint_utils, "load_checkpoint_to_cpu"),
    (ops, "emulate_int8_histogram"),
    (PathManager, "copy"),
]


def test_every_file_is_imported_and_in_the_docstring() -> None:
    folder = Path(str(fairseq_patches.__file__)).parent
    files = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    assert all(hasattr(fairseq_patches, file) for file in files)
    assert re.findall(r"^``(\w+)``$", fairseq_patches.__doc__ or "", re.MULTILINE) == files


def test_importing_the_package_has_put_them_in_place() -> None:
    assert type(scalar_utils.MAPPING).__module__ == "diet_mt.fairseq_patches.scalar_quantization"
    for owner, name in PLACES:
        file = getattr(owner, name).__code__.co_filename
        assert file.startswith(str(Path(str(fairseq_patches.__file__)).parent))
