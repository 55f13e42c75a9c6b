"""Beam search for this plugin's models."""
