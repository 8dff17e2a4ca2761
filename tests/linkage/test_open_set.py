import pytest
import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.linkage.user_evidence import UNCALIBRATED, fit_open_set, normalise_best

USERS, CASES = 20, 400

ALL = torch.ones(USERS, dtype=torch.bool)


def scales(loud: float, draw: torch.Generator) -> Tensor:
    """Scale of each sender's evidence, the same for all users."""
    return loud * (0.5 + torch.rand(CASES, 1, generator=draw, dtype=torch.float64))


def noisy(loud: float, seed: int) -> tuple[Tensor, Tensor]:
    """Evidence that is noise for wrong users, and 4 deviations higher for the true user."""
    draw = Seed(seed).generator()
    users = torch.randint(USERS, (CASES,), generator=draw)
    scores = torch.randn(CASES, USERS, generator=draw, dtype=torch.float64)
    scores[torch.arange(CASES), users] += 4
    return scales(loud, draw) * scores, users


def strangers(loud: float, seed: int) -> Tensor:
    draw = Seed(seed).generator()
    scores = torch.randn(CASES, USERS, generator=draw, dtype=torch.float64)
    return scales(loud, draw) * scores


def test_normalised_evidence_agrees_with_a_calculation_by_hand() -> None:
    scores = torch.tensor([[5.0, 1.0, 3.0, 100.0], [4.0, 2.0, 2.0, 0.0]]).double()
    is_candidate = torch.tensor([True, True, True, False]).expand(2, -1)
    # Others 1, 3 and 2, 2: means 2, squares 2 and 0, pooled 2 / 4.
    variances = (2 + 8 * 0.5) / 10, (0 + 8 * 0.5) / 10
    expected = [(5 - 2) / variances[0] ** 0.5, (4 - 2) / variances[1] ** 0.5]
    assert normalise_best(scores, is_candidate).tolist() == pytest.approx(expected)


def test_normalised_evidence_without_candidates_or_others() -> None:
    scores = torch.ones(2, 3).double()
    nobody = torch.zeros(2, 3, dtype=torch.bool)
    assert normalise_best(scores, nobody).tolist() == [-torch.inf, -torch.inf]
    assert normalise_best(scores, ~nobody).tolist() == [0.0, 0.0]
    assert normalise_best(scores[:, :1], ~nobody[:, :1]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("loud", [1.0, 3.0])
def test_probabilities_are_calibrated_on_larger_evidence(
    loud: float,
) -> None:
    stranger = fit_open_set([(*noisy(1.0, 0), ALL)])
    assert stranger.is_normalised
    seen, unseen = noisy(loud, 1)[0], strangers(loud, 2)
    chances = torch.cat([stranger.probabilities(seen), stranger.probabilities(unseen)])
    true = torch.arange(2 * CASES) >= CASES
    assert float((chances - true.double()).square().mean()) < 0.1
    assert float(chances.mean()) == pytest.approx(0.5, abs=0.05)


def test_uses_raw_evidence_if_normalising_is_worse() -> None:
    # Users on a line: a known user is also close to its neighbours, an unknown one to nobody.
    places = torch.linspace(0, 1, USERS).double()
    users = torch.arange(CASES) % USERS
    scores = -30 * (places[users][:, None] - places[None]).abs()
    holdout = torch.full((CASES,), -1)
    apart = scores - 30.0
    both = fit_open_set([(torch.cat([scores, apart]), torch.cat([users, holdout]), ALL)])
    assert not both.is_normalised
    assert float(both.probabilities(apart).min()) > float(both.probabilities(scores).max())


def test_non_candidates_do_not_change_the_fit() -> None:
    scores, users = noisy(1.0, 0)
    known = ALL.clone()
    known[0] = False
    lost = scores.clone()
    lost[:, 0] = 1000.0
    rows = users != 0
    masked = fit_open_set([(lost[rows], users[rows], known)])
    fewer = fit_open_set([(scores[rows][:, 1:], users[rows] - 1, ALL[1:])])
    assert masked.logistic.intercept == pytest.approx(fewer.logistic.intercept)
    assert masked.logistic.slope == pytest.approx(fewer.logistic.slope)


def test_without_calibration_data_the_probability_is_a_half() -> None:
    assert UNCALIBRATED.probabilities(noisy(1.0, 0)[0]).unique().tolist() == [0.5]
    alone = fit_open_set([(torch.ones(3, 1).double(), torch.zeros(3).long(), ALL[:1])])
    assert alone.probabilities(torch.ones(2, 1).double()).tolist() == [0.5, 0.5]
