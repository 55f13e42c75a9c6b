"""Criterions that the plugin registers, imported explicitly: fairseq never scans this folder."""

from . import diet_sentence_prediction as diet_sentence_prediction
from . import extractive_qa as extractive_qa
