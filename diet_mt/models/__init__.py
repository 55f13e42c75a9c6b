"""Models that the plugin registers, by explicit imports."""

from .. import plugin as plugin
from ..models import diet_roberta as diet_roberta
from ..models import diet_transformer as diet_transformer
