"""``diet-mt prepare``: one file for each corpus."""
