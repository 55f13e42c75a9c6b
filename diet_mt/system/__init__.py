"""Files, locks, processes, progress, options and errors of all commands."""
