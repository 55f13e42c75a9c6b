"""Models that the plugin registers, by explicit imports."""

from .. import plugin as plugin
from . import diet_roberta as diet_roberta
from . import diet_transformer as diet_transformer
