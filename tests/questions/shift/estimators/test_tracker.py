import pytest
import torch

from overheard.questions.shift.estimators.simulated_readings import SimulatedReadings
from overheard.questions.shift.estimators.tracker import calibrate_tracker, fit_share_regression

ROUNDS, CLASSES = 8, 3
NUMBERS = tuple(range(10, 10 + ROUNDS))


def simulated(key: str, seed: int = 0) -> SimulatedReadings:
    """Draw 40 runs without and 20 with a shift, read through one noisy feature of each label.

    The share of label 0 rises by 0.3 in the middle of a shifted run.
    """
    generator = torch.Generator().manual_seed(seed)
    population = torch.full((60, ROUNDS, CLASSES), 1 / CLASSES).double()
    population[40:, ROUNDS // 2 :] += torch.tensor([0.3, -0.15, -0.15]).double()
    held = population + 0.01 * torch.randn(60, 1, CLASSES, generator=generator)
    held = held / held.sum(-1, keepdim=True)
    noise = 0.02 * torch.randn(60, ROUNDS, CLASSES, 1, generator=generator).double()
    rising = torch.zeros(60, CLASSES, dtype=torch.bool)
    rising[40:, 0] = True
    return SimulatedReadings(key, held[..., None] + noise, held, population, rising)


def calibrate(bank: SimulatedReadings, rate: float | None = 0.05):
    return calibrate_tracker(bank, tuple(range(ROUNDS)), rate, estimates_shares=True)


def test_names_the_round_and_the_labels_of_a_shift() -> None:
    tracker, others = calibrate(simulated("a")), simulated("b", 1)
    claim = tracker.claim(others.readings[-1], NUMBERS)
    assert claim.evidence.since == 10 + ROUNDS // 2
    assert claim.evidence.alarm == 10 + ROUNDS // 2
    value, low, high = claim.shares_after.sum_over(torch.tensor([True, False, False]))
    assert low < 1 / 3 + 0.3 < high
    assert abs(value - 1 / 3 - 0.3) < 0.1


def test_runs_without_a_shift_rarely_raise_the_alarm() -> None:
    tracker, others = calibrate(simulated("a")), simulated("b", 2)
    claims = [tracker.claim(readings, NUMBERS) for readings in others.readings[:40]]
    assert sum(claim.evidence.alarm is not None for claim in claims) <= 6


def test_without_a_rate_it_raises_no_alarm_and_still_names_the_round() -> None:
    tracker = calibrate(simulated("c"), None)
    claim = tracker.claim(simulated("b", 1).readings[-1], NUMBERS)
    assert claim.evidence.threshold is None
    assert claim.evidence.alarm is None
    assert claim.evidence.since == 10 + ROUNDS // 2


def test_representations_give_evidence_and_no_shares() -> None:
    bank = simulated("f")
    changes = torch.rand(60, ROUNDS, 4, generator=torch.Generator().manual_seed(3)).double()
    readings = SimulatedReadings("g", changes, bank.true_shares, bank.population, bank.rising)
    tracker = calibrate_tracker(readings, tuple(range(ROUNDS)), 0.05, estimates_shares=False)
    moved = changes[0].clone()
    moved[4:] *= 100
    claim = tracker.claim(moved, NUMBERS)
    assert claim.change is None
    assert claim.evidence.since == 14
    assert claim.evidence.alarm is not None


READ_ROUNDS, READ_CLASSES = 3, 4


def features_of(runs: int, seed: int, noise: float = 0.1):
    """Draw shares, and features of each label that follow them with noise."""
    generator = torch.Generator().manual_seed(seed)
    raw = 0.2 + torch.rand(runs, READ_ROUNDS, READ_CLASSES, generator=generator).double()
    shares = raw / raw.sum(-1, keepdim=True)
    draws = torch.randn(runs, READ_ROUNDS, READ_CLASSES, 3, generator=generator).double()
    signs = torch.tensor([1.0, -2.0, 0.0]).double()
    return shares[..., None] * signs + noise * draws, shares


def test_estimates_the_shares_of_other_runs_without_shrinking_them() -> None:
    regression, _ = fit_share_regression(*features_of(200, 0))
    features, shares = features_of(200, 1)
    read = regression.read(features)
    assert read.sum(-1).flatten().tolist() == pytest.approx([1.0] * 200 * READ_ROUNDS)
    moved, true = read - read.mean((0, 1)), shares - shares.mean((0, 1))
    slope = float((moved * true).sum() / true.square().sum())
    assert slope == pytest.approx(1, abs=0.1)
    assert float(regression.slopes.max()) < 0.95


def test_held_out_estimates_have_the_errors_of_new_runs() -> None:
    regression, held_out = fit_share_regression(*features_of(100, 2))
    own = (held_out - features_of(100, 2)[1]).square().mean().sqrt()
    features, shares = features_of(400, 3)
    new = (regression.read(features) - shares).square().mean().sqrt()
    assert float(own) == pytest.approx(float(new), rel=0.1)


def test_each_round_is_read_by_itself() -> None:
    regression, _ = fit_share_regression(*features_of(100, 4))
    features, _ = features_of(2, 5)
    changed = features.clone()
    changed[:, 2] += 5
    assert torch.equal(regression.read(changed)[:, :2], regression.read(features)[:, :2])


def test_features_far_outside_the_simulated_ones_count_as_the_limit() -> None:
    regression, _ = fit_share_regression(*features_of(100, 6))
    features, _ = features_of(1, 7)
    far, farther = features.clone(), features.clone()
    far[0, 0, 1, 0], farther[0, 0, 1, 0] = 1e3, 1e6
    assert torch.equal(regression.read(far), regression.read(farther))
    assert bool(regression.read(farther).isfinite().all())


def test_features_without_signal_give_the_mean_with_a_bounded_slope() -> None:
    features, shares = features_of(60, 8)
    regression, held_out = fit_share_regression(torch.zeros_like(features), shares)
    assert bool(held_out.isfinite().all())
    assert float(regression.slopes.min()) == pytest.approx(0.05)
