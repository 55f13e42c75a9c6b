"""What trained positions look like: the paper's figures and theorems over checkpoints."""
