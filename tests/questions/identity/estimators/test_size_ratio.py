"""Users by the number of their examples, up to a factor."""

from math import exp, log1p

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from overheard.questions.identity.estimators.size_ratio import learn_size_ratio


def logs(*sizes: float) -> Tensor:
    return torch.tensor([log1p(size) for size in sizes], dtype=torch.float64)


def chances(evidence: Tensor) -> list[float]:
    return (evidence - evidence.logsumexp(0)).exp().tolist()


class TestSizeRatio:
    @pytest.mark.parametrize("factor", [1, 0.25, 3])
    def test_finds_the_factor_that_the_sizes_heard_have_in_common(self, factor):
        priors = (100, 220, 270, 410, 800)
        heard = [log1p(size * factor) for size in priors]
        ratio = learn_size_ratio(logs(*priors), heard)
        named = [int(ratio.evidence(size).argmax()) for size in heard]
        assert named == [0, 1, 2, 3, 4]
        assert min(chances(ratio.evidence(heard[2]))) < 0.01

    def test_priors_of_one_size_tell_nobody_apart(self):
        ratio = learn_size_ratio(logs(50, 50, 50), [log1p(40), log1p(90)])
        assert ratio.evidence(log1p(90)).tolist() == pytest.approx([0, 0, 0])

    def test_sizes_that_have_nothing_to_do_with_the_priors_tell_little(self):
        draws = torch.Generator().manual_seed(0)
        priors, heard = (
            (torch.randn(40, generator=draws, dtype=torch.float64) / 2 + 5).sort().values
            for _ in range(2)
        )
        ratio = learn_size_ratio(priors, heard.tolist())
        most = [max(chances(ratio.evidence(size))) for size in heard.tolist()]
        # One in 40 by chance; the same sizes with the right priors give more than a half.
        right = learn_size_ratio(priors, (priors - 0.7).tolist())
        sure = [max(chances(right.evidence(size))) for size in (priors - 0.7).tolist()]
        assert sum(most) / 40 < 0.15
        assert sum(sure) / 40 > 0.5

    def test_one_size_heard_leans_to_a_factor_of_1_and_no_further(self):
        # A hundred times as many, or as few, is 4.6 standard deviations of what is thought of
        # the factor: some e^(4.6^2 / 2) = 4e4 times less likely, were the width 0.
        ratio = learn_size_ratio(logs(10, 1000), [log1p(1000)])
        few, many = chances(ratio.evidence(log1p(1000)))
        assert few < 0.05
        ratio = learn_size_ratio(logs(500, 1000), [log1p(1000)])
        few, many = chances(ratio.evidence(log1p(1000)))
        assert 0.2 < few < many

    def test_a_size_heard_again_under_another_name_tells_nothing_new(self):
        once, often = (learn_size_ratio(logs(10, 30), [log1p(30)] * times) for times in (1, 50))
        assert torch.equal(once.likelihoods, often.likelihoods)

    @settings(max_examples=20, deadline=None)
    @given(
        st.lists(st.integers(1, 10**6), min_size=2, max_size=6),
        st.lists(st.integers(1, 10**6), min_size=1, max_size=6),
    )
    def test_evidence_is_finite_and_measured_against_anybody(self, priors, heard):
        ratio = learn_size_ratio(logs(*priors), [log1p(size) for size in heard])
        evidence = ratio.evidence(log1p(heard[0]))
        assert bool(evidence.isfinite().all())
        # The mean over users of how much likelier it is theirs than anybody's is 1.
        assert sum(map(exp, evidence.tolist())) / len(priors) == pytest.approx(1)
