"""The share of used words among the first words of a ranking."""

import numpy as np
import pytest

from overheard.questions.words.scorer.words import share_among_first


def test_share_among_first_counts_ties_in_part():
    used = np.array([True, False, True, False])
    # The first is used; of the three that tie for the second place, one is.
    assert share_among_first(np.array([5.0, 1, 1, 1]), used, 2) == pytest.approx(
        (1 + 1 / 3) / 2
    )


def test_list_is_no_longer_than_what_was_used():
    used = np.array([True, False, False, False])
    assert share_among_first(np.array([5.0, 3, 2, 1]), used, 100) == 1.0
