"""Attention, loss, dropout and linear layers over torch alone."""
