"""The posterior of the size ratio identifies users by their numbers of examples."""

from math import exp, log1p

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from overheard.questions.identity.attacks.metadata import fit_size_ratio


def logs(*sizes: float) -> Tensor:
    return torch.tensor([log1p(size) for size in sizes], dtype=torch.float64)


def chances(evidence: Tensor) -> list[float]:
    return (evidence - evidence.logsumexp(0)).exp().tolist()


class TestSizeRatio:
    @pytest.mark.parametrize("factor", [1, 0.25, 3])
    def test_finds_the_common_factor_of_the_observed_sizes(self, factor):
        priors = (100, 220, 270, 410, 800)
        sizes = [log1p(size * factor) for size in priors]
        ratio = fit_size_ratio(logs(*priors), sizes)
        named = [int(ratio.log_likelihood_ratios(size).argmax()) for size in sizes]
        assert named == [0, 1, 2, 3, 4]
        assert min(chances(ratio.log_likelihood_ratios(sizes[2]))) < 0.01

    def test_priors_of_equal_size_give_equal_evidence(self):
        ratio = fit_size_ratio(logs(50, 50, 50), [log1p(40), log1p(90)])
        assert ratio.log_likelihood_ratios(log1p(90)).tolist() == pytest.approx([0, 0, 0])

    def test_unrelated_sizes_give_little_evidence(self):
        draws = torch.Generator().manual_seed(0)
        priors, sizes = (
            (torch.randn(40, generator=draws, dtype=torch.float64) / 2 + 5).sort().values
            for _ in range(2)
        )
        ratio = fit_size_ratio(priors, sizes.tolist())
        most = [max(chances(ratio.log_likelihood_ratios(size))) for size in sizes.tolist()]
        # One in 40 by chance; the same sizes with the right priors give more than a half.
        right = fit_size_ratio(priors, (priors - 0.7).tolist())
        sure = [
            max(chances(right.log_likelihood_ratios(size))) for size in (priors - 0.7).tolist()
        ]
        assert sum(most) / 40 < 0.15
        assert sum(sure) / 40 > 0.5

    def test_a_single_size_favours_a_factor_near_1(self):
        # A hundred times as many, or as few, is 4.6 prior standard deviations of the factor:
        # e^(4.6^2 / 2) = 4e4 times less likely, if the deviation were 0.
        ratio = fit_size_ratio(logs(10, 1000), [log1p(1000)])
        few, many = chances(ratio.log_likelihood_ratios(log1p(1000)))
        assert few < 0.05
        ratio = fit_size_ratio(logs(500, 1000), [log1p(1000)])
        few, many = chances(ratio.log_likelihood_ratios(log1p(1000)))
        assert 0.2 < few < many

    @settings(max_examples=20)
    @given(
        st.lists(st.integers(1, 10**6), min_size=2, max_size=6),
        st.lists(st.integers(1, 10**6), min_size=1, max_size=6),
    )
    def test_evidence_is_finite_and_relative_to_the_average_user(self, priors, sizes):
        ratio = fit_size_ratio(logs(*priors), [log1p(size) for size in sizes])
        evidence = ratio.log_likelihood_ratios(log1p(sizes[0]))
        assert bool(evidence.isfinite().all())
        # The mean of the likelihood ratios over users is 1.
        assert sum(map(exp, evidence.tolist())) / len(priors) == pytest.approx(1)
