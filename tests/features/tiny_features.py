"""Features small enough to know what they must give; importable from other processes."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from bittern.errors import InputError
from bittern.features.base import Feature, ImageFeature


class MeanColour(ImageFeature):
    """The mean of each channel, after a while; what it saw is written to a log."""

    name = "mean-colour"

    def __init__(self, scale=1.0, *, log=None, delay=0.0):
        self.scale = scale
        self.log = log
        self.delay = delay

    def _describe(self, image):
        time.sleep(self.delay)
        if self.log is not None:
            with Path(self.log).open("a") as log:
                log.write(f"{image[0, 0, 0]} {os.getpid()}\n")
        return (self.scale * image.mean(axis=(0, 1))).astype(np.float32)


class Size(ImageFeature):
    """Height and width; images of one row are refused."""

    name = "size"

    def _describe(self, image):
        if len(image) == 1:
            raise InputError("Size: an image needs two rows.")
        return np.array(image.shape[:2], np.float32)


class Centred(ImageFeature):
    """The mean colour less that of the images it was fitted on."""

    name = "centred"

    def __init__(self, *, log=None):
        self.log = log

    def fit(self, X, y=None):
        """Remember the mean, and log how many images it is of."""
        if self.log is not None:
            with Path(self.log).open("a") as log:
                log.write(f"{len(X)}\n")
        self.mean_ = MeanColour().transform(X).mean(axis=0)
        return self

    def _describe(self, image):
        return MeanColour()._describe(image) - self.mean_


class Stubborn(Centred):
    """It learns what no file of arrays can hold."""

    name = "stubborn"

    def fit(self, X, y=None):
        """Learn a set."""
        self.mean_ = {1, 2}
        return self


class Deadly(ImageFeature):
    """It ends its process at one of the images."""

    name = "deadly"

    def _describe(self, image):
        if image[0, 0, 0] == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.zeros(1, np.float32)


class Threads(ImageFeature):
    """How many threads the libraries of this process use."""

    name = "threads"

    def _describe(self, image):
        import cv2
        from threadpoolctl import threadpool_info

        blas = max((pool["num_threads"] for pool in threadpool_info()), default=1)
        return np.array([cv2.getNumThreads(), blas, os.getpid()], np.float32)


class Letters(Feature):
    """The lengths of texts."""

    name = "letters"
    takes = "texts"

    def transform(self, X):
        """A number for each text."""
        return np.array([[len(text)] for text in X], np.float32)
