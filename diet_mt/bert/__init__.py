"""Text and tasks of encoders: documents, GLUE, XNLI, questions, and their metrics."""
