"""Criterions that the plugin registers, by explicit imports: fairseq never scans this folder."""

from .. import plugin as plugin
from . import diet_sentence_prediction as diet_sentence_prediction
from . import extractive_qa as extractive_qa
