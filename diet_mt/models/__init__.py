"""Models that the plugin registers, imported explicitly so that importing the package is enough."""

from . import diet_roberta as diet_roberta
from . import diet_transformer as diet_transformer
