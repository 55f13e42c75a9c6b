"""Runs commands, a JSON list of modules and their words, one after another in this process.

A module's ``cli_main`` is called, or its ``main`` with the words; ``hub`` encodes a sentence by the
Python interface. The first that fails ends it. Before each, its number is printed.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path


def hub(folder: str, data: str) -> None:
    """Encodes a sentence with tokenizer and bpe that the checkpoint names."""
    from fairseq import hub_utils

    loaded = hub_utils.from_pretrained(folder, "checkpoint_last.pt", data)
    made = hub_utils.GeneratorHubInterface(loaded["args"], loaded["task"], loaded["models"])
    print(f"hub: {made.encode('bal der').tolist()}")


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    for number, (module, *words) in enumerate(json.loads(sys.argv[1])):
        print(f"step {number}", flush=True)
        sys.argv = [module, *words]
        if module == "hub":
            hub(*words)
        elif module.startswith("fairseq_cli"):
            import_module(module).cli_main()
        elif status := import_module(module).main(words):
            sys.exit(status)


if __name__ == "__main__":
    main()
