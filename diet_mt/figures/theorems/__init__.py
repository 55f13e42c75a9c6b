"""The theorems of Chen et al. 2021, and sum against concatenation, as numbers.

On random draws, in float64, and on checkpoints. Letters as in the paper: n positions, d the model's
width, d_h the size of a head, d_p the rank of the positions.
"""
