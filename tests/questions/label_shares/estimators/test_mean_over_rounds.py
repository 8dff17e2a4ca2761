"""Claims from the mean of the estimates of each round."""

import pytest
import torch

from overheard.core.parties import client
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.estimators.mean_over_rounds import (
    claim_mean_over_rounds,
)


@pytest.mark.parametrize("count", [1, 2, 5, 13])
def test_claims_are_those_of_each_target_alone_bit_for_bit(count):
    draws = torch.Generator().manual_seed(count)
    estimates = torch.rand(7, count, 10, generator=draws, dtype=torch.float64) - 0.1
    rounds = {client(number): list(one) for number, one in enumerate(estimates)}
    claims = claim_mean_over_rounds(rounds)
    for target, shares in rounds.items():
        alone = normalize_to_shares(torch.stack(shares).mean(0)).float()
        assert torch.equal(claims[target].shares, alone)
