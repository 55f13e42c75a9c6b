"""Parallel text, from its publisher to fairseq's binaries. Nothing here imports torch."""
