"""Errors that a user can mend, and how a command shows them: one line, no traceback."""

from __future__ import annotations


class UserError(ValueError):
    """Something in the user's input is wrong; the message says what, and what to do about it."""
