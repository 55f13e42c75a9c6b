"""Corpora: text in, text out. Nothing here knows fairseq or torch."""
