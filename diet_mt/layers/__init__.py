"""Layers and stacks of fairseq's Transformer with position encodings."""
