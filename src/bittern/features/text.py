"""Text: word stems, weighted by tf-idf or mixed into topics.

What is learned are plain arrays, so that a fitted feature can be saved with a model or a collection
and turn new texts into rows.
"""

from __future__ import annotations

import os
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, check_count
from bittern.errors import InputError, NotFittedError
from bittern.extras import import_extra
from bittern.features.base import Feature
from bittern.io.models import learned_attributes

WORD = re.compile(r"[^\W\d_]{2,}")  # letters only
REMEMBERED = 1 << 16  # words whose stems are cached
LARGEST = 1 << 31  # bytes of a dense array


class TextFeature(Feature):
    """A feature of the word stems in a text, in any order.

    X is a sequence of strings.  The words of a text are its runs of two or more letters of any
    script, in lower case; digits and apostrophes end a word, so that "John's" gives "john".  Words
    in ``stop_words`` are left out, and the others are reduced to their Porter stems.

    ``fit`` learns ``vocabulary_``, the stems that occur in at least ``min_df`` of its texts, in
    alphabetical order.  Other stems are ignored later.

    Reference: [Porter-1980].
    """

    takes = "texts"

    stop_words: Collection[str] | None
    min_df: int
    learns: ClassVar[tuple[str, int]]  # the array besides the vocabulary, and its number of axes
    vocabulary_: NDArray[np.str_]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the vocabulary, and anything else the feature needs, from these texts."""
        self._check()
        counter = self._counter(min_df=self.min_df)
        texts = check_texts(X, self._title)
        try:
            counts = counter.fit_transform(texts)
        except ValueError:  # from scikit-learn, if no stem is left
            raise InputError(
                f"{self._title}: no word except stop words is in {self.min_df} or more of the "
                f"{len(texts)} texts; lower min_df, or pass more texts."
            ) from None
        self._learn(counts)
        self.vocabulary_ = np.array(counter.get_feature_names_out(), dtype=np.str_)
        return self

    def transform(self, X: Any) -> Any:
        """One row for each text."""
        self._check()
        if not hasattr(self, "vocabulary_"):
            raise NotFittedError(f"{self._title}: call fit() before transform().")
        counter = self._counter(vocabulary=self.vocabulary_)
        return self._rows(counter.transform(check_texts(X, self._title)))

    def knows(self, text: str) -> bool:
        """Whether any word of the text has its stem in the vocabulary."""
        return self._counter(vocabulary=self.vocabulary_).transform([text]).nnz > 0

    @abstractmethod
    def _learn(self, counts: Any) -> None:
        """Learn from sparse counts, one row for each text and one column for each stem."""

    @abstractmethod
    def _rows(self, counts: Any) -> Any:
        """The feature's rows from these counts."""

    def _check_learned(self) -> None:
        if self.vocabulary_.dtype.kind != "U" or self.vocabulary_.ndim != 1:
            raise ValueError("vocabulary_ must be a list of stems")
        if len(np.unique(self.vocabulary_)) != len(self.vocabulary_):
            raise ValueError("vocabulary_ has a stem twice")
        learned = learned_attributes(self)
        name, n_axes = self.learns
        if name not in learned or learned[name].ndim != n_axes:
            raise ValueError(f"{name} must have {n_axes} axes")
        widths = {array.shape[-1] for array in learned.values()}
        if len(widths) > 1:
            raise ValueError(f"arrays for {' and '.join(map(str, sorted(widths)))} stems")
        for name, array in learned.items():
            if name != "vocabulary_" and not (array.dtype.kind == "f" and np.isfinite(array).all()):
                raise ValueError(f"{name} must be finite numbers")

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """A stemmer."""
        return ("snowballstemmer",)

    def _check(self) -> None:
        check_count(self.min_df, f"{self._title}: min_df")
        stop = self.stop_words
        is_collection = isinstance(stop, Collection) and not isinstance(stop, str | bytes)
        if stop is not None and not (is_collection and all(isinstance(w, str) for w in stop)):
            raise InputError(
                f"{self._title}: stop_words must be None or a collection of words, got {stop!r}."
            )

    def _counter(self, **options: Any) -> Any:
        """A scikit-learn counter of stems."""
        from sklearn.feature_extraction.text import CountVectorizer

        stem = stem_of(self._title)
        given = () if self.stop_words is None else self.stop_words  # an array has no truth value
        stop = {word for one in given for word in words_of(one)}

        def stems(text: str) -> list[str]:
            return [stem(word) for word in words_of(text) if word not in stop]

        return CountVectorizer(analyzer=stems, **options)


class BagOfWords(TextFeature):
    r"""Weights of a text's stemmed words by tf-idf; they sum to one.

    The weight of stem :math:`w` in a text is

    .. math:: \frac{n_w \ln(N / N_w)}{\sum_v n_v \ln(N / N_v)}

    with :math:`n_w` the number of times it occurs in this text and :math:`N_w` the number of the
    :math:`N` texts given to ``fit`` that contain it; ``idf_`` holds the logarithms.  A stem that
    all of them contain has weight zero.  A text without any stem of positive weight has a row of
    zeros.

    Rows are dense, with one column for each stem of ``vocabulary_``.  With ``sparse`` they are a
    SciPy CSR array of the same values, for large vocabularies.

    References: [Yavlinsky-2004] for the feature, [Salton-Buckley-1988] for the weights,
    [Porter-1980] for the stems.
    """

    name = "bag-of-words"
    learns = "idf_", 1

    def __init__(
        self,
        stop_words: Collection[str] | None = None,
        *,
        min_df: int = 1,
        sparse: bool = False,
    ) -> None:
        self.stop_words = stop_words
        self.min_df = min_df
        self.sparse = sparse

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.sparse, bool | np.bool_):
            raise InputError(f"{self._title}: sparse must be True or False, got {self.sparse!r}.")

    def _learn(self, counts: Any) -> None:
        n, n_stems = counts.shape
        self.idf_ = np.log(n / np.bincount(counts.indices, minlength=n_stems))

    def _rows(self, counts: Any) -> Any:
        """The weights of counted stems, each row divided by its sum."""
        from scipy.sparse import csr_array
        from sklearn.preprocessing import normalize

        n, n_stems = counts.shape
        if not self.sparse and 4 * n * n_stems > LARGEST:
            raise InputError(
                f"{self._title}: {n:,} texts by {n_stems:,} stems are too large for a dense array; "
                "pass sparse=True, or a larger min_df."
            )
        weights = csr_array(normalize(counts.multiply(self.idf_), norm="l1"), dtype=np.float32)
        weights.eliminate_zeros()
        return weights if self.sparse else weights.toarray()


class Topics(TextFeature):
    """A text's mixture of topics by latent Dirichlet allocation; it sums to one.

    A topic is a distribution over stems.  ``fit`` learns ``n_topics`` of them by variational
    Bayes, in ``n_iter`` passes over its texts.  A text's row is the expected share of each topic,
    given its stems.  A text without a known stem has the prior's row: the same share of each.

    ``weights_`` are the parameters of the topics' Dirichlet distributions, ``(n_topics, n_stems)``;
    ``topics_``, their means, are the topics, each summing to one.

    References: [Blei-Ng-Jordan-2003], [Porter-1980] for the stems.
    """

    name = "topics"
    learns = "weights_", 2

    def __init__(
        self,
        n_topics: int = 10,
        *,
        stop_words: Collection[str] | None = None,
        min_df: int = 1,
        n_iter: int = 50,
        random_state: int | None = 0,
    ) -> None:
        self.n_topics = n_topics
        self.stop_words = stop_words
        self.min_df = min_df
        self.n_iter = n_iter
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        check_count(self.n_topics, f"{self._title}: n_topics")
        check_count(self.n_iter, f"{self._title}: n_iter")
        if self.random_state is not None:
            check_count(self.random_state, f"{self._title}: random_state", 0)

    def _learn(self, counts: Any) -> None:
        from sklearn.decomposition import LatentDirichletAllocation

        learner = LatentDirichletAllocation(
            self.n_topics, max_iter=self.n_iter, random_state=self.random_state
        )
        self.weights_ = learner.fit(counts).components_

    @property
    def topics_(self) -> Float64Array:
        """The topics, as distributions over the stems."""
        return self.weights_ / self.weights_.sum(axis=1, keepdims=True)

    def _rows(self, counts: Any) -> Float32Array:
        rows: Float32Array = self._allocation().transform(counts).astype(np.float32)
        return rows

    def _allocation(self) -> Any:
        """scikit-learn's model with the learned weights: all that it uses for new texts."""
        from scipy.special import digamma
        from sklearn.decomposition import LatentDirichletAllocation

        n_topics, n_stems = self.weights_.shape
        model = LatentDirichletAllocation(n_topics)
        model.components_, model.n_features_in_ = self.weights_, n_stems
        model.doc_topic_prior_ = 1 / n_topics
        total = self.weights_.sum(axis=1, keepdims=True)
        model.exp_dirichlet_component_ = np.exp(digamma(self.weights_) - digamma(total))
        return model


def shared_words(texts: Sequence[str], title: str) -> tuple[Any, list[str]]:
    """Which of the words that texts share is in which text, as sparse booleans, and the words.

    Words with the same stem count as one.  Stems of a single text, and of more than half of the
    texts, tell nothing about which texts are alike, and are left out.
    """
    stem = stem_of(title)
    counter = BagOfWords()._counter(min_df=2, max_df=0.5)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # from scikit-learn, if no stem is left
        raise InputError(
            f"{title}: learns from words that texts share, but there are none."
        ) from None
    word_of = {stem(word): word for text in reversed(texts) for word in words_of(text)}
    return counts > 0, [word_of[name] for name in counter.get_feature_names_out()]


def words_of(text: str) -> list[str]:
    """The words of a text in order: runs of two or more letters, in lower case.

    Unicode's form NFKC first turns ligatures and full-width letters into ordinary ones.
    """
    return WORD.findall(unicodedata.normalize("NFKC", text).lower())


def stem_of(title: str) -> Callable[[str], str]:
    """The function from a word in lower case to its Porter stem; ``title`` is for errors."""
    snowball = import_extra("snowballstemmer", title)
    return lru_cache(REMEMBERED)(snowball.stemmer("porter").stemWord)


def check_texts(X: Any, title: str) -> list[str]:
    """The texts as a list; a single text, no text, or anything but strings is an error."""
    is_sequence = hasattr(X, "__len__") and hasattr(X, "__getitem__")
    if isinstance(X, str | bytes | os.PathLike | dict) or not is_sequence:
        raise InputError(
            f"{title}: X must be a sequence of texts, got {type(X).__name__}; put one in a list."
        )
    texts = [X[i] for i in range(len(X))]
    if not texts:
        raise InputError(f"{title}: X must hold at least one text.")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{title}: text {i} must be a string, got {type(text).__name__}.")
    return texts
