"""Everything that the plugin replaces in fairseq, one file each."""
