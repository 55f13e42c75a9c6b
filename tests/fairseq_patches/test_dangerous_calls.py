"""What fairseq calls that could run code or a program: all of it was read for docs/security.md."""

from __future__ import annotations

import re
from pathlib import Path

import fairseq

_CALLS = re.compile(
    r"(?<![\w.])exec\(|\bpickle\.(?:loads?|Unpickler)\(|\btorch\.load\(|\bimport_module\("
    r"|\bextractall\(|\bsubprocess\.(?!Call)\w+\(|\bos\.(?:system|popen)\(|\byaml\.load\("
    r"|\btorch\.hub\.load\(|\ballow_pickle=True"
)
# eval is replaced everywhere: test_literals.py.
READ = {
    "checkpoint_utils.py": {"torch.load"},
    "criterions/__init__.py": {"import_module"},
    "data/audio/__init__.py": {"import_module"},
    "data/audio/data_cfg.py": {"yaml.load"},
    "data/audio/feature_transforms/__init__.py": {"import_module"},
    "data/codedataset.py": {"torch.load"},
    "data/encoders/__init__.py": {"import_module"},
    "data/fasta_dataset.py": {"subprocess.check_output"},
    "data/plasma_utils.py": {"subprocess.Popen"},
    "distributed/utils.py": {"pickle.loads", "subprocess.check_output", "torch.load"},
    "file_utils.py": {"extractall"},
    "model_parallel/criterions/__init__.py": {"import_module"},
    "model_parallel/models/__init__.py": {"import_module"},
    "models/__init__.py": {"import_module"},
    "models/ema/__init__.py": {"import_module"},
    "models/huggingface/__init__.py": {"import_module"},
    "models/speech_to_text/hub_interface.py": {"torch.hub.load"},
    "models/speech_to_text/xm_transformer.py": {"torch.load"},
    "models/text_to_speech/vocoder.py": {"torch.load"},
    "modules/quantization/pq/em.py": {"torch.load"},
    "optim/__init__.py": {"import_module"},
    "optim/fused_adam.py": {"import_module"},
    "optim/lr_scheduler/__init__.py": {"import_module"},
    "scoring/__init__.py": {"import_module"},
    "tasks/__init__.py": {"import_module"},
    "tasks/audio_pretraining.py": {"subprocess.call"},
    "utils.py": {"import_module"},
}


def test_fairseq_calls_nothing_that_was_not_read() -> None:
    package = Path(fairseq.__file__).parent
    for path in package.rglob("*.py"):
        name = str(path.relative_to(package))
        found = {call.rstrip("(") for call in _CALLS.findall(path.read_text(encoding="utf-8"))}
        if not name.startswith("examples"):
            assert found <= READ.get(name, set()), name
