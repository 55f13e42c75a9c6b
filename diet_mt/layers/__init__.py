"""The only part that knows fairseq's hooks for layers, stacks and decoding caches."""
