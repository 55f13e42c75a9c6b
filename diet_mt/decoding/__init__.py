"""Beam search for what people decode with, made for this plugin's models."""
