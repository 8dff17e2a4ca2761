"""RMIA and BASE compare the probability of a record's label with that of shadow models."""

from math import log

import pytest
import torch

from overheard.core.parties import client
from overheard.questions.membership.attacks.probability_ratio import (
    BaseMembership,
    Rmia,
    share_of_smaller,
)
from tests.questions.membership.attacks.test_lira import figure

# Probabilities of the labels of three records under the target and under three shadow models.
# The first of these trained on the first record, and the others did not: .5, and .3 on average.
# The second record is in two models, .3 and .1, and not in one of .2; so it has .2 and .2. The
# third is in none: without it .6, and with it more by the average difference of the others,
# (.2 + 0) / 2. So the means are .4, .2 and .65.
TARGET = torch.tensor([0.8, 0.2, 0.78], dtype=torch.float64).log()
SHADOWS = torch.tensor(
    [[0.5, 0.3, 0.5], [0.2, 0.1, 0.6], [0.4, 0.2, 0.7]], dtype=torch.float64
).log()
IS_MEMBER = torch.tensor([[True, True, False], [False, True, False], [False, False, False]])
NO_MEMBER = torch.zeros_like(IS_MEMBER)


def test_base_subtracts_the_log_of_the_mean_probability() -> None:
    found = BaseMembership().scores(TARGET, SHADOWS, IS_MEMBER)
    assert found.exp().tolist() == pytest.approx([0.8 / 0.4, 0.2 / 0.2, 0.78 / 0.65])
    # Offline the means are 1.1 / 3, .2 and .6.
    found = BaseMembership(online=False, out_weight=0.5).scores(TARGET, SHADOWS, NO_MEMBER)
    assert found.tolist() == pytest.approx(
        [log(0.8) - log(1.1 / 3) / 2, log(0.2) / 2, log(0.78) - log(0.6) / 2]
    )


def test_rmia_counts_the_records_whose_ratio_is_far_below() -> None:
    # The ratios are 2, 1 and 1.2. Beyond 1.5 times: 2 over 1 and 1.2, and no other.
    found = Rmia(gamma=1.5).scores(TARGET, SHADOWS, IS_MEMBER)
    assert found.tolist() == pytest.approx([2 / 3 - 0.5, -0.5, -0.5])
    found = Rmia(gamma=1.0).scores(TARGET, SHADOWS, IS_MEMBER)
    assert found.tolist() == pytest.approx([2 / 3 - 0.5, -0.5, 1 / 3 - 0.5])
    # A ratio of exactly gamma times another does not count.
    two = torch.tensor([log(2.0), 0.0], dtype=torch.float64)
    assert share_of_smaller(two, two, 2.0).tolist() == [0.0, 0.0]


def test_rmia_offline_takes_models_with_the_record_to_be_more_confident() -> None:
    # ((1 + .5) m + 1 - .5) / 2 for m = .2 and .6 is .4 and .7.
    found = Rmia(online=False, out_weight=0.5).log_ratios(TARGET, SHADOWS, NO_MEMBER)
    assert found[1:].exp().tolist() == pytest.approx([0.2 / 0.4, 0.78 / 0.7])


@pytest.mark.parametrize("attack", [Rmia(models=32), BaseMembership(models=32, online=False)])
def test_finds_members_of_the_target_alone(by_heart, attack) -> None:
    assert figure(by_heart, attack, "membership_auc") > 0.9
    assert figure(by_heart, attack, "membership_auc", client(1)) > 0.9
