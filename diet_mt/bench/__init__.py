"""Benchmarks: speed and memory of training and decoding, cost and size of encoders."""
