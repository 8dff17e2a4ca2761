"""Tokenisation of texts, by a vocabulary fitted to the training texts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from jaxtyping import Int64
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.settings import Positive, Settings

PADDING = 0
"""The token that pads a text at its end."""

UNKNOWN = 1
"""The token of all words outside the vocabulary, and of a text without words."""

RESERVED_TOKENS = 2
"""The number of tokens that are not words; the first word has this number."""


@dataclass(frozen=True, slots=True)
class TextSettings(Settings):
    """Settings of tokenisation.

    Args:
        vocabulary: the number of words in the vocabulary, the most frequent ones.
        tokens: the number of words that are read of a text, from its start.

    """

    vocabulary: Positive = 20_000
    tokens: Positive = 40


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of a vocabulary, and the token of each."""

    numbers: Mapping[str, int]

    def __len__(self) -> int:
        """Return the number of tokens, including padding and unknown."""
        return RESERVED_TOKENS + len(self.numbers)

    def token_words(self, *, are_named: bool, are_labels: bool = False) -> TokenWords:
        """Return the words of the tokens.

        Args:
            are_named: whether the words may be named, or stay numbers.
            are_labels: whether label i is the word of token i + `RESERVED_TOKENS`.

        """
        words = tuple(sorted(self.numbers, key=self.numbers.__getitem__)) if are_named else ()
        first_label = RESERVED_TOKENS if are_labels else None
        return TokenWords(len(self), RESERVED_TOKENS, words, first_label)

    def encode(
        self, texts: Sequence[list[str]], tokens: int
    ) -> Int64[Tensor, "examples tokens"]:
        """Return the tokens of the first words of each text."""
        rows = torch.full((len(texts), tokens), PADDING)
        for row, words in enumerate(texts):
            read = [self.numbers.get(word, UNKNOWN) for word in words[:tokens]] or [UNKNOWN]
            rows[row, : len(read)] = torch.tensor(read)
        return rows


@dataclass(frozen=True, slots=True)
class TokenisedTexts:
    """Training and test texts as tokens of one vocabulary.

    Args:
        train: tokens of the training texts, to which the vocabulary was fitted.
        test: tokens of the test texts.
        words: the words of the tokens.

    """

    train: Int64[Tensor, "train_examples tokens"]
    test: Int64[Tensor, "test_examples tokens"]
    words: TokenWords

    @property
    def vocabulary(self) -> int:
        """The number of tokens, including padding and unknown."""
        return self.words.tokens


def tokenise_texts(
    train: Sequence[str], test: Sequence[str], settings: TextSettings
) -> TokenisedTexts:
    """Tokenise all texts by the vocabulary of the training texts.

    Raises:
        DataError: if the training texts have no words.

    """
    train_words = split_words(train)
    vocabulary = alphabetical_vocabulary(train_words, settings.vocabulary)
    return TokenisedTexts(
        vocabulary.encode(train_words, settings.tokens),
        vocabulary.encode(split_words(test), settings.tokens),
        vocabulary.token_words(are_named=True),
    )


def split_words(texts: Sequence[str]) -> list[list[str]]:
    """Split each text into words, as scikit-learn does.

    Words are lower-cased runs of two or more letters, digits or underscores.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    split = CountVectorizer().build_analyzer()
    return [split(text) for text in texts]


def alphabetical_vocabulary(texts: Sequence[list[str]], size: int) -> Vocabulary:
    """Return the vocabulary of the most frequent words of these texts, in alphabetical order.

    Raises:
        DataError: if the texts have no words.

    """
    from sklearn.feature_extraction.text import CountVectorizer

    # The texts are split already, so the analyzer must not change the lists of words.
    vectorizer = CountVectorizer(analyzer=_unchanged, max_features=size)
    try:
        vectorizer.fit(texts)
    except ValueError as failure:
        raise DataError(
            "the training texts have no words: choose another column or file"
        ) from failure
    return _numbered(vectorizer.get_feature_names_out().tolist())


def ranked_vocabulary(texts: Sequence[list[str]], size: int) -> Vocabulary:
    """Return the vocabulary of the most frequent words of these texts, by falling frequency.

    Equally frequent words are in alphabetical order.

    Raises:
        DataError: if the texts have no words.

    """
    counts = Counter(chain.from_iterable(texts))
    if not counts:
        raise DataError("the training texts have no words: choose another column or file")
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return _numbered(ranked[:size])


def _unchanged(words: list[str]) -> list[str]:
    return words


def _numbered(words: list[str]) -> Vocabulary:
    return Vocabulary({word: RESERVED_TOKENS + rank for rank, word in enumerate(words)})
