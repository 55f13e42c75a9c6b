"""Experiments: trainings from recipes, and sweeps of data preparation, trainings and reports."""
