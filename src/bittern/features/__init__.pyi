"""The public names of the stage, listed once; each loads when it is first used."""

from .base import Feature as Feature
from .base import ImageFeature as ImageFeature
from .base import PictureFeature as PictureFeature
from .base import iter_images as iter_images
from .catalogue import FEATURES as FEATURES
from .catalogue import NINE as NINE
from .cifar10 import prepare_cifar10 as prepare_cifar10
from .colour import ColourStructure as ColourStructure
from .colour import HSVFocus as HSVFocus
from .colour import HSVGlobal as HSVGlobal
from .colour import RGBMoments as RGBMoments
from .deep import Deep as Deep
from .extracted import Extracted as Extracted
from .extracted import load_features as load_features
from .extraction import extract as extract
from .gist import Gist as Gist
from .sentence import Sentence as Sentence
from .storage import load as load
from .text import BagOfWords as BagOfWords
from .text import Topics as Topics
from .texture import Convolution as Convolution
from .texture import Smoothness as Smoothness
from .texture import Thumbnail as Thumbnail
from .texture import Uniformity as Uniformity
from .texture import Variance as Variance
from .visual_words import VisualWords as VisualWords
