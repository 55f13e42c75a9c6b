"""The only part that knows fairseq's hooks for layers and stacks."""
