"""The commands: dataclasses whose fields are their options."""
