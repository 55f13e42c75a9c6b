"""What trained models and their translations show beside a score."""
