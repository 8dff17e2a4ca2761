import torch

from overheard.questions.shift.estimators.simulated_readings import SimulatedReadings
from overheard.questions.shift.estimators.tracker import calibrate_tracker

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
    readings = SimulatedReadings("g", changes, bank.held, bank.population, bank.rising)
    tracker = calibrate_tracker(readings, tuple(range(ROUNDS)), 0.05, estimates_shares=False)
    moved = changes[0].clone()
    moved[4:] *= 100
    claim = tracker.claim(moved, NUMBERS)
    assert claim.change is None
    assert claim.evidence.since == 14
    assert claim.evidence.alarm is not None
