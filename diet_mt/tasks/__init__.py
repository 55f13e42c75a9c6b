"""Tasks that the plugin registers, by explicit imports."""

from .. import plugin as plugin
from . import diet_sentence_prediction as diet_sentence_prediction
from . import diet_translation as diet_translation
from . import extractive_qa as extractive_qa
