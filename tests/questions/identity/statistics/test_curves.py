"""Curves match the reported scores and values worked by hand."""

import numpy as np
import pytest

from overheard.questions.identity.pages.identity_figures import cmc_curve, identification_curve
from overheard.questions.identity.statistics.ranking import build_rankings
from tests.auditing.identity_findings import identity_finding, identity_run


def test_the_share_within_k_guesses_matches_a_value_worked_by_hand() -> None:
    # b is first; c and d share ranks 3 and 4 after a and b; the unknown user does not count.
    ranked = build_rankings([
        identity_finding((0, 1, 0, 0), "b", 0),
        identity_finding((2, 1, 0, 0), "c", 1),
        identity_finding((2, 1, 0, 0), "stranger", 2),
    ])  # fmt: skip
    assert cmc_curve(ranked, (1, 2, 3, 4)) == pytest.approx([1 / 2, 1 / 2, 3 / 4, 1])


def test_the_identification_rate_rises_with_the_false_alarms() -> None:
    rates = identification_curve(
        build_rankings(identity_run(2.0, strangers=5)), (0.0, 10.0, 50.0, 100.0)
    )
    assert (np.diff(rates) >= 0).all()
    assert rates[0] < rates[-1]
    assert rates[-1] == pytest.approx(
        cmc_curve(build_rankings(identity_run(2.0, strangers=5)), (1,))[0]
    )
