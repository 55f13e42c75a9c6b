"""Extractive question answering without a model: read, cut into windows, decode, compare."""
