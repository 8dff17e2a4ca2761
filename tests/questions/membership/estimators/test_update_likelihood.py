"""The likelihood ratio of updates: by hand, by dense matrices, and with known answers."""

from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.questions.membership.estimators.update_likelihood import (
    choose_strength,
    fit_scale,
    log_likelihood_ratios,
    noise_variance,
    ratios_at,
)
from overheard.questions.membership.estimators.update_products import (
    ShadowProducts,
    UpdateProducts,
)

PARAMETERS, RECORDS = 60, 40


def products(
    shadows: torch.Tensor,
    directions: torch.Tensor,
    is_member: torch.Tensor,
    updates: torch.Tensor,
) -> tuple[ShadowProducts, UpdateProducts]:
    """Return the products of these vectors, centred on the mean of the shadows."""
    mean = shadows.mean(0)
    centred, others = shadows - mean, updates - mean
    return (
        ShadowProducts(
            is_member,
            centred @ centred.T,
            centred @ directions.T,
            directions.square().sum(1),
            shadows.shape[1],
        ),
        UpdateProducts(others @ centred.T, others @ directions.T, others.square().sum(1)),
    )


def planted(
    *, models: int = 64, share: float = 0.2, scale: float = 0.5, noise: float = 0.3
) -> tuple[ShadowProducts, UpdateProducts, torch.Tensor]:
    """Return updates that are sums of scaled directions of their members, plus noise."""
    generator = Seed(0).generator()
    directions = torch.randn(RECORDS, PARAMETERS, generator=generator, dtype=torch.float64)
    is_member = torch.rand(models + 8, RECORDS, generator=generator) < share
    spread = torch.randn(models + 8, PARAMETERS, generator=generator, dtype=torch.float64)
    updates = scale * is_member.double() @ directions + noise * spread
    shadows, others = products(
        updates[:models], directions, is_member[:models], updates[models:]
    )
    return shadows, others, is_member[models:]


def row(updates: UpdateProducts, number: int) -> UpdateProducts:
    one = slice(number, number + 1)
    return UpdateProducts(
        updates.with_shadows[one], updates.with_records[one], updates.squares[one]
    )


def test_without_whitening_the_ratio_is_the_formula() -> None:
    shadows = ShadowProducts(
        torch.ones(2, 1, dtype=torch.bool),
        torch.eye(2, dtype=torch.float64),
        torch.zeros(2, 1, dtype=torch.float64),
        torch.tensor([4.0], dtype=torch.float64),
        9,
    )
    update = UpdateProducts(
        torch.zeros(1, 2, dtype=torch.float64),
        torch.tensor([[3.0]], dtype=torch.float64),
        torch.tensor([5.0], dtype=torch.float64),
    )
    # s u'd / v - s^2 d'd / 2v with s = 2, v = 4, u'd = 3, d'd = 4: 1.5 - 2 = -0.5
    assert ratios_at([shadows], [update], [4.0], 2.0, 0.0).tolist() == [[-0.5]]
    # A second round with the same products and half of the noise: - 0.5 + (3 - 4) = -1.5
    both = ratios_at([shadows] * 2, [update] * 2, [4.0, 2.0], 2.0, 0.0)
    assert both.tolist() == [[-1.5]]


@pytest.mark.parametrize("strength", [0.1, 1.0])
def test_equals_the_ratio_of_dense_covariances(strength: float) -> None:
    generator = Seed(3).generator()
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    shadows, directions, updates = draw(7, 20), draw(5, 20), draw(2, 20)
    is_member = torch.zeros(7, 5, dtype=torch.bool)
    one, other = products(shadows, directions, is_member, updates)
    centred = shadows - shadows.mean(0)
    covariance = 0.5 * torch.eye(20, dtype=torch.float64) + strength * centred.T @ centred / 6
    inverse = covariance.inverse()
    fit = (updates - shadows.mean(0)) @ inverse @ (2 * directions).T
    length = ((2 * directions) @ inverse * (2 * directions)).sum(1)
    expected = fit - length / 2
    torch.testing.assert_close(ratios_at([one], [other], [0.5], 2.0, strength), expected)


def test_members_score_above_0_and_non_members_below() -> None:
    shadows, updates, is_member = planted()
    right = []
    for number, members in enumerate(is_member):
        ratios = log_likelihood_ratios([shadows], [row(updates, number)])
        right.append(float(((ratios > 0) == members).double().mean()))
    assert sum(right) / len(right) > 0.95


def test_measures_noise_that_shadow_models_lack() -> None:
    # The target's update has noise of deviation 2; four shadow updates have none.
    generator = Seed(5).generator()
    shadows = torch.randn(4, PARAMETERS, generator=generator, dtype=torch.float64)
    noise = 2 * torch.randn(50, PARAMETERS, generator=generator, dtype=torch.float64)
    directions = torch.eye(PARAMETERS, dtype=torch.float64)
    is_member = torch.zeros(4, PARAMETERS, dtype=torch.bool)
    both = products(shadows, directions, is_member, shadows.mean(0) + noise)
    # The mean over 50 x 56 squares has a relative standard error of 2.7 %.
    assert float(noise_variance(*both).mean()) == pytest.approx(4.0, rel=0.1)


def test_the_scale_is_fitted_and_never_0() -> None:
    shadows, _, _ = planted(scale=0.5, models=400, noise=0.1)
    assert fit_scale([shadows]) == pytest.approx(0.5, rel=0.1)
    opposite = replace(shadows, shadow_records=-shadows.shadow_records)
    assert 0 < fit_scale([opposite]) < 0.05


def test_counts_differences_between_clients_as_noise_only_if_that_ranks_better() -> None:
    # Members alone make up the updates, so their directions are confounded: whitening helps.
    crowded, _, _ = planted(share=0.5, noise=0.01, models=200)
    assert choose_strength([crowded], fit_scale([crowded])) == 1.0


def test_refuses_records_that_no_shadow_model_trained_on() -> None:
    shadows, _, _ = planted()
    nobody = replace(shadows, is_member=torch.zeros_like(shadows.is_member))
    with pytest.raises(NeedsError, match="set more models"):
        fit_scale([nobody])
