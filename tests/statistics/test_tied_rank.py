"""Ranks of candidates with ties."""

import pytest
import torch

from overheard.statistics.tied_rank import TiedRank, rank_candidate


def test_counts_better_and_tied_candidates() -> None:
    scores = torch.tensor([0.3, 0.9, 0.3, 0.1])
    assert [rank_candidate(scores, number) for number in range(4)] == [
        TiedRank(1, 2), TiedRank(0, 1), TiedRank(1, 2), TiedRank(3, 1),
    ]  # fmt: skip


def test_a_tie_across_the_limit_is_within_it_with_a_probability() -> None:
    # Two are better; three share ranks 3, 4 and 5, of which 2 are among the first 4.
    shared = TiedRank(2, 3)
    assert [shared.probability_within(length) for length in (2, 4, 5, 9)] == pytest.approx(
        [0, 2 / 3, 1, 1]
    )
    assert shared.reciprocal_rank() == pytest.approx((1 / 3 + 1 / 4 + 1 / 5) / 3)
