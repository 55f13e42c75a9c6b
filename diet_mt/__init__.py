"""diet_mt: a fairseq plugin for one question: where should position information go?"""

from . import checkpoints, errors
from . import models as models

errors.show_in_one_line()
checkpoints.install()
