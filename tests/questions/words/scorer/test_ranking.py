"""Average precision of a ranking of words, and the share of used words among the first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from overheard.questions.words.scorer.words import (
    average_precisions_of_words,
    share_among_first,
)
from overheard.statistics.average_precision import average_precisions

DRAWS = np.random.default_rng(1)


def test_equals_scikit_learn_without_ties_for_each_truth():
    scores, used = DRAWS.normal(size=50), DRAWS.random((4, 50)) < 0.2
    found = average_precisions_of_words(scores, used)
    assert found == pytest.approx([average_precision_score(one, scores) for one in used])


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=9)
)
def test_ties_count_as_in_rankings_of_the_targets_of_users(words: list[tuple[int, bool, bool]]):
    scores, *used = (np.array(column) for column in zip(*words, strict=True))
    expected = [average_precisions(scores, one.astype(int), 2)[1] for one in used]
    found = average_precisions_of_words(scores.astype(float), np.array(used))
    assert found == pytest.approx(expected, nan_ok=True)


def test_truth_without_a_word_has_no_precision():
    found = average_precisions_of_words(np.arange(3.0), np.zeros((1, 3), dtype=bool))
    assert np.isnan(found).all()


def test_share_among_first_counts_ties_in_part():
    used = np.array([True, False, True, False])
    # The first is used; of the three that tie for the second place, one is.
    assert share_among_first(np.array([5.0, 1, 1, 1]), used, 2) == pytest.approx(
        (1 + 1 / 3) / 2
    )


def test_list_is_no_longer_than_what_was_used():
    used = np.array([True, False, False, False])
    assert share_among_first(np.array([5.0, 3, 2, 1]), used, 100) == 1.0
