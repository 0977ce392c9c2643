"""What features of texts share: words, their Porter stems, and how often a text has each."""

from __future__ import annotations

import os
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.errors import InputError, MissingExtraError, NotFittedError
from bittern.features.base import Feature

__all__ = ["TextFeature", "check_texts", "stem_of", "words_of"]

WORD = re.compile(r"[^\W\d_]{2,}")  # letters only
REMEMBERED = 1 << 16  # words whose stems are not found twice

Stemmer = Callable[[str], str]


class TextFeature(Feature):
    """A feature of the stems in a text, without regard to their order.

    X is a sequence of strings.  A text's words are its runs of two or more letters of any script,
    in lower case: neither digits nor apostrophes belong to a word, so that "John's" is "john".
    Words in ``stop_words`` are left out, and of the others Porter's stems are taken.

    ``fit`` learns ``vocabulary_``, the stems that occur in at least ``min_df`` of its texts, in
    the order of their letters.  Stems outside it do not count later.

    Reference: [Porter-1980].
    """

    takes = "texts"

    stop_words: Collection[str] | None
    min_df: int
    vocabulary_: NDArray[np.str_]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the vocabulary, and what the feature makes of it, from these texts alone."""
        self._check()
        counter = self._counter(min_df=self.min_df)
        texts = check_texts(X, self._title)
        try:
            counts = counter.fit_transform(texts)
        except ValueError:  # scikit-learn's, where no stem is left
            raise InputError(
                f"{self._title}: no word but stop words is in {self.min_df} or more of the "
                f"{len(texts)} texts; lower min_df, or give more texts."
            ) from None
        self._learn(counts)
        self.vocabulary_ = np.array(counter.get_feature_names_out(), dtype=np.str_)
        return self

    def transform(self, X: Any) -> Any:
        """A row for each text."""
        self._check()
        if not hasattr(self, "vocabulary_"):
            raise NotFittedError(f"{self._title}: call fit() before transform().")
        counter = self._counter(vocabulary=self.vocabulary_)
        return self._rows(counter.transform(check_texts(X, self._title)))

    @abstractmethod
    def _learn(self, counts: Any) -> None:
        """Learn from the sparse counts, a row for each text and a column for each stem."""

    @abstractmethod
    def _rows(self, counts: Any) -> Any:
        """The feature's rows from such counts."""

    def _check(self) -> None:
        check_count(self.min_df, f"{self._title}: min_df")
        stop = self.stop_words
        is_collection = isinstance(stop, Collection) and not isinstance(stop, str | bytes)
        if stop is not None and not (is_collection and all(isinstance(w, str) for w in stop)):
            raise InputError(
                f"{self._title}: stop_words must be None or a collection of words, got {stop!r}."
            )

    def _counter(self, **options: Any) -> Any:
        """scikit-learn's counter of stems."""
        from sklearn.feature_extraction.text import CountVectorizer

        stem = stem_of(self._title)
        stop = {word for given in self.stop_words or () for word in words_of(given)}

        def stems(text: str) -> list[str]:
            return [stem(word) for word in words_of(text) if word not in stop]

        return CountVectorizer(analyzer=stems, **options)


def words_of(text: str) -> list[str]:
    """The words of a text in their order: runs of two or more letters, in lower case.

    Ligatures, full-width letters and such are first made ordinary (Unicode's form NFKC).
    """
    return WORD.findall(unicodedata.normalize("NFKC", text).lower())


def stem_of(title: str) -> Stemmer:
    """The function from a word in lower case to its Porter stem; ``title`` is for errors."""
    try:
        import snowballstemmer
    except ImportError:
        raise MissingExtraError(
            f"{title}: needs snowballstemmer; pip install 'bittern[features]'."
        ) from None
    return lru_cache(REMEMBERED)(snowballstemmer.stemmer("porter").stemWord)


def check_texts(X: Any, title: str) -> list[str]:
    """The texts as a list; one alone, none at all, or what is no text, is refused."""
    is_sequence = hasattr(X, "__len__") and hasattr(X, "__getitem__")
    if isinstance(X, str | bytes | os.PathLike | dict) or not is_sequence:
        raise InputError(
            f"{title}: X must be a sequence of texts, got {type(X).__name__}; one goes in [ ]."
        )
    texts = [X[i] for i in range(len(X))]
    if not texts:
        raise InputError(f"{title}: X must hold at least one text.")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{title}: text {i} must be a string, got {type(text).__name__}.")
    return texts
