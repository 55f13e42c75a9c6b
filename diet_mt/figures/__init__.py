"""The figures and theorems of the paper over trained checkpoints."""
