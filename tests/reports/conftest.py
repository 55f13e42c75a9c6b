"""The corpus and the trained models of the command tests."""

from ..commands.conftest import workshop as workshop
