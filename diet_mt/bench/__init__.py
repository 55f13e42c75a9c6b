"""Benchmarks: speed and memory of training and decoding, cost and size of encoders."""

# Choices of the commands, which show them without loading torch.
MEASURES = ("train", "forward", "decode")  # of speed; encoders do not decode
SHAPES = ("base", "small")  # of encoders
BASELINES = ("learned", "segments-at-input")  # of encoders
LENGTHS = (1024, 2048, 4096, 8192)  # tokens, of memory
COUNTED = ("stock", "sinusoidal", "rotary", "diet_rel", "diet_abs")  # systems, of operators
PRECISIONS = ("fp32", "fp16", "bf16")  # of operators
