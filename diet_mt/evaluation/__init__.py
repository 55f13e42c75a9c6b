"""Evaluation of checkpoints: decoding, prediction, scores, rows, comparison."""
