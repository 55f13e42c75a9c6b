"""Preparation of parallel text, from download to fairseq's binaries, without torch."""
