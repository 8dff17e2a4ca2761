import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.questions.shift.estimators.share_track import fit_share_track

CLASSES, ROUNDS = 4, 3


def shares_of(clients: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(clients, CLASSES, generator=generator, dtype=torch.float64) + 0.2
    return weights / weights.sum(1, keepdim=True)


def features_of(shares: torch.Tensor, noise: float, seed: int = 0) -> torch.Tensor:
    """Build two features per label: its root, on a different scale in each round, and noise."""
    generator = torch.Generator().manual_seed(seed)
    scale = torch.tensor([1.0, 5.0, 0.2], dtype=torch.float64)[:, None]
    root = shares.sqrt()[:, None] * scale + 7
    size = (len(shares), ROUNDS, CLASSES)
    useless = torch.randn(size, generator=generator, dtype=torch.float64)
    disturbed = root + noise * scale * torch.randn(size, generator=generator).double()
    return torch.stack((disturbed, useless), 3)


def test_exact_features_give_exact_shares_in_every_round() -> None:
    shares, halves = shares_of(40, 0), torch.arange(40) % 2
    track = fit_share_track(features_of(shares, 0.0), shares, halves)
    target = shares_of(1, 9)
    read = track.read(features_of(target, 0.0)[0])
    assert torch.allclose(read, target.expand(ROUNDS, CLASSES), atol=0.01)
    assert torch.allclose(
        track.virtual_shares, shares[:, None].expand(-1, ROUNDS, -1), atol=0.01
    )


def test_noise_does_not_shrink_estimates_on_average() -> None:
    # Plain regression would shrink every estimate to the mean, here by about a third.
    shares, halves = shares_of(400, 1), torch.arange(400) % 2
    track = fit_share_track(features_of(shares, 0.05), shares, halves)
    estimated, true = track.virtual_shares - 0.25, (shares - 0.25)[:, None]
    slope = (estimated * true).sum() / true.expand_as(estimated).square().sum()
    assert float(slope) == pytest.approx(1, abs=0.1)


def test_uninformative_features_give_much_larger_errors() -> None:
    shares, halves = shares_of(60, 2), torch.arange(60) % 2
    telling = fit_share_track(features_of(shares, 0.02), shares, halves)
    mute = fit_share_track(features_of(shares[torch.randperm(60)], 0.02), shares, halves)
    errors = [
        float((one.virtual_shares - shares[:, None]).square().mean()) for one in (telling, mute)
    ]
    assert errors[0] < errors[1] / 5


@settings(max_examples=20, deadline=None)
@given(st.floats(0.0, 2.0), st.integers(0, 100))
def test_estimates_are_always_shares(noise: float, seed: int) -> None:
    shares, halves = shares_of(20, seed), torch.arange(20) % 2
    track = fit_share_track(features_of(shares, noise, seed), shares, halves)
    read = track.read(features_of(shares_of(1, seed + 1), noise + 3, seed)[0])
    assert torch.allclose(read.sum(1), torch.ones(ROUNDS, dtype=torch.float64))
    assert bool((read >= 0).all())


def test_each_half_is_estimated_from_the_other_half_only() -> None:
    shares, halves = shares_of(40, 3), torch.arange(40) % 2
    signs = features_of(shares, 0.05)
    # Client 0 is in half 0. Its features affect the regression of half 0 and thus estimates of
    # half 1; in its own half they affect only the common scale.
    moved = signs.clone()
    moved[0] = signs[0].flip(1)
    before, after = (fit_share_track(one, shares, halves) for one in (signs, moved))
    change = (before.coefficients - after.coefficients).abs().amax(1)
    assert float(change[1]) < float(change[0]) / 5
    assert not torch.allclose(
        before.virtual_shares[1::2], after.virtual_shares[1::2], atol=1e-3
    )
