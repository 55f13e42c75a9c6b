"""Long work in stages: locked, watched, shared by processes, continued after an interruption."""
