"""The public names: what type checkers see, and what loads when it is first used."""

from . import data as data
from . import experiments as experiments
from . import features as features
from . import fusion as fusion
from . import hashing as hashing
from . import index as index
from . import metrics as metrics
from . import report as report
from . import store as store
from .codes import Codes as Codes
from .data import DATASETS as DATASETS
from .data import SPLITS as SPLITS
from .data import Dataset as Dataset
from .data import Split as Split
from .data import distance_percentiles as distance_percentiles
from .data import load as load
from .data import make_split as make_split
from .errors import BitternError as BitternError
from .errors import FileError as FileError
from .errors import InputError as InputError
from .errors import MissingExtraError as MissingExtraError
from .errors import NotFittedError as NotFittedError
from .errors import PositionError as PositionError
from .errors import UnknownNameError as UnknownNameError
from .index import INDEXES as INDEXES
from .index import FlatIndex as FlatIndex
from .index import Hits as Hits
from .index import MultiIndex as MultiIndex
from .index import TableIndex as TableIndex
from .index import table_profile as table_profile
from .index import table_surface as table_surface
from .metrics import METRICS as METRICS
from .metrics import Curve as Curve
from .metrics import MetricName as MetricName
from .metrics import Score as Score
from .metrics import Scores as Scores
from .metrics import evaluate as evaluate
from .metrics import interpolated_pr_curve as interpolated_pr_curve
from .metrics import pr_curve as pr_curve
from .metrics import rmse as rmse
from .profile import TieProfile as TieProfile
from .relevance import Relevance as Relevance
from .relevance import ball_radius as ball_radius

__version__: str
