"""Each encoding against an implementation by others, where there is one to install."""
