"""Files, locks, processes, progress, options and errors: what all commands rest on."""
