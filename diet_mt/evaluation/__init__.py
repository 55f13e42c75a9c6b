"""From a checkpoint to a record: decode or predict, score, keep, compare."""
