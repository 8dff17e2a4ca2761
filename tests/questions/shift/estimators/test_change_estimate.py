import pytest
import torch

from overheard.questions.shift.estimators.change_estimate import (
    ResponseCurve,
    fit_change_estimator,
    widen_by_size,
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


def risen(sizes: list[int], classes: int) -> torch.Tensor:
    return torch.arange(classes) < torch.tensor(sizes)[:, None]


def test_the_widening_is_the_conformal_quantile_among_runs_with_about_as_many_labels() -> None:
    # Errors of 1 to 10 deviations where one label rises, 0.1 to 1 where two of four do. Of each
    # 10 runs, the interval at 90 % reaches the largest: ceil(0.9 * 11) = 10.
    steps = torch.arange(1, 11).double()
    one, two = torch.zeros(10, 4).double(), torch.zeros(10, 4).double()
    one[:, 0] = steps
    two[:, 0] = steps * 2**0.5 / 10
    factors = widen_by_size(
        torch.cat((one, two)), risen([1] * 10 + [2] * 10, 4), torch.eye(4).double()
    )
    assert factors == pytest.approx((10 / 1.6449, 1 / 1.6449), rel=1e-4)


def test_a_number_of_labels_without_runs_has_the_factor_of_the_closest() -> None:
    errors = torch.ones(18, 12).double()
    errors[:9] *= 3
    factors = widen_by_size(errors, risen([1] * 9 + [6] * 9, 12), torch.eye(12).double())
    # 2 is closer to 1 than to 6 on the log scale, and 3 is closer to 6.
    expected = [3, 3] + [6 / 6**0.5] * 4
    assert factors == pytest.approx([factor / 1.6449 for factor in expected], rel=1e-4)


def test_a_label_that_is_overestimated_whenever_it_rises_widens_intervals() -> None:
    generator = torch.Generator().manual_seed(5)
    rising = torch.eye(4, dtype=torch.bool).repeat(16, 1)  # one label in each of 64 runs
    shares = torch.full((64, ROUNDS, 4), 0.25).double()
    shares[:, SINCE:] += 0.2 * (rising[:, None].double() - 0.25)
    tracks = shares + 0.01 * torch.randn(shares.shape, generator=generator).double()
    biased = tracks.clone()
    biased[rising[:, 0], SINCE:, 0] += 0.15
    scan = fit_change_scan(0.25 + tracks - shares)
    fair, wide = (
        [
            estimator.read(track, SINCE)[1].sum_over(labels)
            for track, labels in zip(of_all, rising, strict=True)
        ]
        for of_all in (tracks, biased)
        for estimator in [fit_change_estimator(scan, of_all, shares, rising)]
    )
    assert wide[0][2] - wide[0][1] > 2 * (fair[0][2] - fair[0][1])
    assert sum(low <= 0.4 <= high for _, low, high in wide) >= 0.9 * len(rising)
