"""Parallel text: from where it is published to what fairseq reads. Nothing here knows torch."""
