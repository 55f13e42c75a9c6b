"""diet_mt: a fairseq plugin for one question: where should position information go?"""

from . import models as models
