import pytest
import torch

from overheard.questions.shift.estimators.change_estimate import (
    ResponseCurve,
    fit_change_estimator,
)
from overheard.questions.shift.estimators.change_scan import fit_change_scan

ROUNDS, SINCE = 8, 4


def shifts_of(runs: int, seed: int, noise: float = 0.03):
    """Draw tracks of two labels, the share of one of which rises, and their truth."""
    generator = torch.Generator().manual_seed(seed)
    before, rise = 0.5, 0.1 + 0.3 * torch.rand(runs, generator=generator).double()
    share = torch.full((runs, ROUNDS), before).double()
    share[:, SINCE:] += rise[:, None]
    errors = noise * torch.randn(runs, ROUNDS, generator=generator).double()
    persistent = noise * torch.randn(runs, 2, generator=generator).double()
    track = share + errors + persistent.repeat_interleave(ROUNDS // 2, 1)
    rising = torch.tensor([True, False]).expand(runs, 2)
    return torch.stack((track, 1 - track), -1), torch.stack((share, 1 - share), -1), rising


def still_tracks(runs: int, seed: int) -> torch.Tensor:
    tracks, shares, _ = shifts_of(runs, seed)
    return tracks - shares + 0.5


SCAN = fit_change_scan(still_tracks(100, 0))


@pytest.mark.slow
def test_intervals_cover_the_share_that_rises_at_their_level() -> None:
    estimator = fit_change_estimator(SCAN, *shifts_of(200, 1))
    tracks, shares, _ = shifts_of(300, 2)
    covered = 0
    for track, true in zip(tracks, shares, strict=True):
        since = int(SCAN.read(track[None])[1][0, -1])
        _, low, high = estimator.read(track, since)[1].sum_over(torch.tensor([True, False]))
        covered += low <= float(true[-1, 0]) <= high
    assert 0.84 < covered / 300 < 0.96


def test_the_change_is_that_of_the_means_before_and_after() -> None:
    estimator = fit_change_estimator(SCAN, *shifts_of(200, 1))
    tracks, shares, _ = shifts_of(1, 3, noise=0.0)
    change, after = estimator.read(tracks[0], SINCE)
    true = shares[0, -1] - shares[0, 0]
    assert change.value.tolist() == pytest.approx(true.tolist(), abs=0.03)
    assert after.value.tolist() == pytest.approx(shares[0, -1].tolist(), abs=0.03)


def test_a_curved_response_is_inverted() -> None:
    tracks, shares, rising = shifts_of(200, 4, noise=0.005)
    # Estimates that overshoot: twice as far from one half as the truth.
    estimator = fit_change_estimator(SCAN, 2 * tracks - 0.5, shares, rising)
    _, after = estimator.read(2 * tracks[0] - 0.5, SINCE)
    assert after.value.tolist() == pytest.approx(shares[0, -1].tolist(), abs=0.03)


def test_the_curve_is_inverted_between_its_points_and_continued_beyond() -> None:
    curve = ResponseCurve(torch.tensor([0.0, 0.4]).double(), torch.tensor([0.2, 0.4]).double())
    # 0.3 lies halfway: 0.2. 0.5 lies 0.1 beyond the end: 0.5. Their sum is 0.7.
    found = curve.true_shares(torch.tensor([[0.3, 0.5]]).double())
    assert found[0].tolist() == pytest.approx([0.2 / 0.7, 0.5 / 0.7])
