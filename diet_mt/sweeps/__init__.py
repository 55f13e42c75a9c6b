"""One engine for experiments that are files: prepare, runs side by side or as jobs, report."""
