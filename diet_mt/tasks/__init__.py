"""Tasks that the plugin registers, imported explicitly so that importing the package is enough."""

from . import diet_sentence_prediction as diet_sentence_prediction
from . import diet_translation as diet_translation
from . import extractive_qa as extractive_qa
