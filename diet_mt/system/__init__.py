"""Files, locks, processes, progress, options and errors for all commands."""
