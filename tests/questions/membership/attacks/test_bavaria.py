"""BaVarIA takes Student-t densities under a prior that all records share."""

import pytest
import torch
from scipy.stats import t

from overheard.questions.membership.attacks.bavaria import Bavaria
from tests.questions.membership.attacks.test_lira import figure


def test_the_score_is_the_ratio_of_two_student_densities() -> None:
    target = torch.tensor([2.0, 1.0]).double()
    shadows = torch.tensor([[3.0, 1.0], [1.0, 0.0], [0.0, 5.0], [0.0, 3.0]]).double()
    is_member = torch.tensor([[True, False], [True, False], [False, True], [False, True]])
    scores = Bavaria(mean_weight=2.0, variance_weight=4.0).log_likelihood_ratio(
        target, shadows, is_member
    )
    # With the record: 3 and 1, and 5 and 3. All have the mean 3, and squares 2 + 2 around their
    # own means, by 2 degrees of freedom: 2. So mu0 = 3 and a0 = 2, b0 = 4. Of the first record
    # n = 2, m = 2, S = 2, k = 4, mu = (6 + 4) / 4, a = 3, b = 4 + 1 + 2 * 2 / 8 = 5.5.
    with_first = t.logpdf(2.0, 6, 2.5, (5.5 * 1.25 / 3) ** 0.5)
    # Without it: 0 and 0, and 1 and 0 of the second: mu0 = .25, squares 0 + .5 by 2, b0 = .5.
    # Of the first m = 0, S = 0, mu = .5 / 4, b = .5 + 2 * 2 * .25 ** 2 / 8 = .53125.
    without_first = t.logpdf(2.0, 6, 0.125, (0.53125 * 1.25 / 3) ** 0.5)
    assert float(scores[0]) == pytest.approx(with_first - without_first)


def test_works_with_records_that_no_shadow_model_trained_on(by_heart) -> None:
    assert figure(by_heart, Bavaria(models=8), "membership_auc") > 0.85
