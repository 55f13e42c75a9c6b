"""Criterions that the plugin registers, by explicit imports: fairseq never scans this folder."""

from .. import plugin as plugin
from ..criterions import diet_sentence_prediction as diet_sentence_prediction
from ..criterions import extractive_qa as extractive_qa
