"""Tasks that the plugin registers, by explicit imports."""

from .. import plugin as plugin
from ..tasks import diet_sentence_prediction as diet_sentence_prediction
from ..tasks import diet_translation as diet_translation
from ..tasks import extractive_qa as extractive_qa
