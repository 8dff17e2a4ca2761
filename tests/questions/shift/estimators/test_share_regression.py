import pytest
import torch

from overheard.questions.shift.estimators.share_regression import fit_share_regression

ROUNDS, CLASSES = 3, 4


def features_of(runs: int, seed: int, noise: float = 0.1):
    """Draw shares, and features of each label that follow them with noise."""
    generator = torch.Generator().manual_seed(seed)
    raw = 0.2 + torch.rand(runs, ROUNDS, CLASSES, generator=generator).double()
    shares = raw / raw.sum(-1, keepdim=True)
    draws = torch.randn(runs, ROUNDS, CLASSES, 3, generator=generator).double()
    signs = torch.tensor([1.0, -2.0, 0.0]).double()
    return shares[..., None] * signs + noise * draws, shares


def test_estimates_the_shares_of_other_runs_without_shrinking_them() -> None:
    regression, _ = fit_share_regression(*features_of(200, 0))
    features, shares = features_of(200, 1)
    read = regression.read(features)
    assert read.sum(-1).flatten().tolist() == pytest.approx([1.0] * 200 * ROUNDS)
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
