"""Measurements: speed, memory, and decoding beside other programs."""
