"""Translation models for other runtimes."""
