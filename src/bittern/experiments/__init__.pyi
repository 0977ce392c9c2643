"""The public names of the stage, listed once; each loads when it is first used."""

from .advice import advise as advise
from .advice.record import Advice as Advice
from .cells import Cell as Cell
from .cells import Trial as Trial
from .cells import cells_of as cells_of
from .cells import trials_of as trials_of
from .protocol import PARADIGMS as PARADIGMS
from .protocol import Method as Method
from .protocol import Protocol as Protocol
from .record import Example as Example
from .record import Record as Record
from .record import Value as Value
from .records import Records as Records
from .running import Watcher as Watcher
from .running import run as run
from .search import SearchSettings as SearchSettings
from .split_files import write_splits as write_splits
from .verification import Verification as Verification
from .verification import verify as verify
