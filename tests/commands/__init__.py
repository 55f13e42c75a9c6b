"""Real fairseq commands, each in a process of its own, on a tiny corpus and tiny models."""
