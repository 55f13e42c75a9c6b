"""Tasks that the plugin registers, imported explicitly so that importing the package is enough."""

from . import diet_translation as diet_translation
