"""Errors that a user can mend."""


class UserError(ValueError):
    """Something in the user's input is wrong; the message says what, and what to do about it."""
