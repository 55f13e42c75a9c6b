"""From a recipe to a fairseq-train that runs: one command, one folder, continued where it was."""
