"""The paper's figures and theorems, over small checkpoints."""
