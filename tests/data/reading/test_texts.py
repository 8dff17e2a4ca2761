from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from overheard.core.errors import DataError
from overheard.data.reading.texts import (
    TextSettings,
    alphabetical_vocabulary,
    ranked_vocabulary,
    tokenise_texts,
)
from overheard.disk.limits import VARIABLE

PATH = Path("notes.csv")


def test_words_are_tokenised_padded_and_cut() -> None:
    texts = tokenise_texts(
        PATH, ["The cat sat", "the the cat"], ["a dog the cat the", ""], TextSettings(10, 4)
    )
    # Alphabetical: cat 2, sat 3, the 4; padding 0, unknown 1; one-letter words do not count.
    assert texts.vocabulary == 5
    assert texts.train.tolist() == [[4, 2, 3, 0], [4, 4, 2, 0]]
    assert texts.test.tolist() == [[1, 4, 2, 4], [1, 0, 0, 0]]


def test_only_the_most_frequent_words_are_in_the_vocabulary() -> None:
    texts = tokenise_texts(PATH, ["aa aa bb", "aa bb cc"], ["aa bb cc"], TextSettings(2, 3))
    assert texts.vocabulary == 4
    assert texts.test.tolist() == [[2, 3, 1]]


def test_words_are_split_and_chosen_as_by_scikit_learn() -> None:
    draw = np.random.default_rng(0).poisson(30, (200, 40))
    texts = [" ".join(f"Wörd_{number}" for number in row) for row in draw]
    texts += ["It's a\u00adb, 中文 ÉTÉ x1 _ __ 4 42 İzmir 😀 a😀bc", "\ttab\x85tab-stop ² ½ ﬁx"]
    for size in (5, 20, 35, 100):
        expected = CountVectorizer(max_features=size).fit(texts).get_feature_names_out()
        assert list(alphabetical_vocabulary(PATH, texts, size).numbers) == expected.tolist()


def test_refuses_too_many_different_words(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(f"w{number}" for number in range(1_000))]
    monkeypatch.setenv(VARIABLE, "600KB")
    with pytest.raises(
        DataError, match=r"notes.csv: .* different words takes 160000 .* --max-unpacked 1GB"
    ):
        alphabetical_vocabulary(PATH, texts, 10)
    monkeypatch.setenv(VARIABLE, "640KB")
    assert len(alphabetical_vocabulary(PATH, texts, 10).numbers) == 10


def test_words_may_be_numbered_by_frequency() -> None:
    texts = ["zz bb zz aa", "zz cc bb"]
    vocabulary = ranked_vocabulary(PATH, texts, 3)
    # zz occurs three times, bb twice, aa and cc once: aa is first in the alphabet.
    assert dict(vocabulary.numbers) == {"zz": 2, "bb": 3, "aa": 4}
    assert len(vocabulary) == 5
    assert vocabulary.encode(texts, 3).tolist() == [[2, 3, 2], [2, 1, 3]]


def test_refuses_texts_without_words() -> None:
    with pytest.raises(DataError, match="no words"):
        tokenise_texts(PATH, ["", "?!"], ["aa"], TextSettings())
    with pytest.raises(DataError, match="no words"):
        ranked_vocabulary(PATH, ["", "?!"], 3)
