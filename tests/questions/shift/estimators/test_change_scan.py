from itertools import combinations

import pytest
import torch

from overheard.questions.shift.estimators.change_scan import ROOT, ChangeScan, fit_change_scan


def plain_scan(usual: float = 1.0) -> ChangeScan:
    """Return a scan of three rounds and one number, without centre or weights."""
    table = torch.zeros(4, 4, 4).double()
    for first, change, end in combinations(range(4), 3):
        table[first, change, end] = usual
    return ChangeScan(
        torch.zeros(3, 1).double(),
        torch.ones(3).double(),
        torch.ones(1, 1).double(),
        table,
        torch.zeros(2).double(),
        torch.ones(2).double(),
    )


def test_the_evidence_is_the_squared_distance_of_means_relative_to_the_usual_one() -> None:
    track = torch.tensor([[[0.0], [0.0], [6.0]]]).double()
    evidence, since = plain_scan().read(track)
    # At round 2, a change there has distance 6 and one at round 1 has 3 - 0.
    assert since.tolist() == [[1, 2]]
    # At the change in round 2, the change inside the two rounds before it is 0, so that the
    # track varies less than usual and is not inflated: 36.
    assert evidence[0].tolist() == pytest.approx([0.0, 36.0**ROOT])


def test_its_own_variation_elsewhere_lowers_the_evidence() -> None:
    track = torch.tensor([[[0.0], [4.0], [10.0]]]).double()
    evidence, since = plain_scan().read(track)
    # A change at round 2 has distance 8. The one before it, at round 1, has distance 4 where 1
    # is usual; with the prior's weight of 2 the variance is (16 + 2) / (1 + 2) times the usual.
    # A change at round 1 has distance 7 and, after it, one of 6: 49 / 12.7 is less.
    assert since.tolist() == [[1, 2]]
    assert float(evidence[0, 1]) == pytest.approx((64 / 6) ** ROOT)


def test_a_larger_usual_distance_lowers_the_evidence_in_proportion() -> None:
    track = torch.tensor([[[0.0], [0.0], [6.0]]]).double()
    evidence, _ = plain_scan(4.0).read(track)
    assert float(evidence[0, 1]) == pytest.approx((36 / 4) ** ROOT)
    inflated, _ = plain_scan().read(track, 4.0)
    assert inflated.tolist() == evidence.tolist()


def test_simulated_runs_have_evidence_of_mean_0_and_deviation_1() -> None:
    tracks = torch.randn(60, 5, 4, generator=torch.Generator().manual_seed(0)).double()
    evidence, _ = fit_change_scan(tracks).read(tracks)
    assert evidence.mean(0).tolist() == pytest.approx([0.0] * 4, abs=1e-9)
    assert evidence.std(0, correction=0).tolist() == pytest.approx([1.0] * 4)


def test_noisy_rounds_have_little_weight() -> None:
    tracks = torch.randn(200, 12, 2, generator=torch.Generator().manual_seed(1)).double()
    tracks[:, 3] *= 20
    weights = fit_change_scan(tracks).round_weights(slice(2, 4))
    assert float(weights.sum()) == pytest.approx(1)
    assert float(weights[1]) < 0.1


def test_shares_that_sum_to_one_can_be_scanned() -> None:
    raw = torch.rand(40, 4, 3, generator=torch.Generator().manual_seed(2)).double()
    tracks = raw / raw.sum(-1, keepdim=True)
    scan = fit_change_scan(tracks)
    assert scan.whitener.shape == (3, 2)
    assert bool(scan.read(tracks)[0].isfinite().all())


def test_refuses_runs_that_do_not_vary() -> None:
    with pytest.raises(ValueError, match="vary between two rounds"):
        fit_change_scan(torch.ones(5, 3, 2))
