import torch

from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks import amortised
from overheard.questions.label_shares.attacks.amortised import cached_cross_fit
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings

CLIENTS, CLASSES = 24, 3


def readings(seed: int) -> ProbeReadings:
    draws = Seed(seed).generator()
    return ProbeReadings(
        torch.randn(CLIENTS, CLASSES, 5, generator=draws),
        torch.rand(CLIENTS, 2 * CLASSES + 1, CLASSES, generator=draws),
        torch.rand(2 * CLASSES + 1, CLASSES, generator=draws),
        torch.randn(CLIENTS, 3 * CLASSES + 2, CLASSES, generator=draws),
    )


SHARES = torch.rand(CLIENTS, CLASSES, generator=Seed(9).generator()).double().softmax(1)
HALVES = torch.arange(CLIENTS) % 2
ON_QUARTER = torch.arange(CLIENTS) // 2 % 2 == 1


def test_a_cached_fit_is_exact_and_not_fitted_again(monkeypatch):
    shelf, told = MemoryTensorCache(), readings(0)
    first = cached_cross_fit(shelf, told, SHARES, HALVES, ON_QUARTER, 5, Seed(1))
    monkeypatch.setattr(amortised, "fit_with_cross_fitting", None)  # a call would be an error
    again = cached_cross_fit(shelf, told, SHARES, HALVES, ON_QUARTER, 5, Seed(1))
    assert torch.equal(first.virtual_estimates, again.virtual_estimates)
    assert torch.equal(first.estimate_shares(readings(3)), again.estimate_shares(readings(3)))


def test_other_readings_seeds_or_steps_are_fitted_again():
    shelf, told = MemoryTensorCache(), readings(0)
    first = cached_cross_fit(
        shelf, told, SHARES, HALVES, ON_QUARTER, 5, Seed(1)
    ).virtual_estimates
    others = (
        cached_cross_fit(shelf, readings(4), SHARES, HALVES, ON_QUARTER, 5, Seed(1)),
        cached_cross_fit(shelf, told, SHARES, HALVES, ON_QUARTER, 5, Seed(2)),
        cached_cross_fit(shelf, told, SHARES, HALVES, ON_QUARTER, 6, Seed(1)),
    )
    assert all(not torch.equal(first, other.virtual_estimates) for other in others)
