"""Experiments: prepared data, trainings by recipes, and sweeps of them."""
