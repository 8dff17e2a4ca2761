"""Likelihood ratios of membership from inner products of updates and record gradients."""

from collections.abc import Sequence
from math import sqrt

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.questions.membership.estimators.update_products import (
    ShadowProducts,
    UpdateProducts,
)

STRENGTHS = (0.0, 0.1, 0.3, 1.0)
"""How much of the variation of shadow updates counts as noise; the best is chosen on shadow
models. With 1, directions in which clients differ anyway get little weight."""

MIN_NOISE_SHARE = 0.01
"""Least share of an update's square that counts as noise outside of the shadows' span."""

MIN_RELATIVE_SCALE = 1e-3
"""Least scale of a record's direction, relative to the root of the ratio of the mean squares of
shadow updates and directions. It keeps the order of records where the estimate is 0."""

MAX_RATIO = 1e30
"""Log-likelihood ratios are clamped to this magnitude, within the range of float32."""


def log_likelihood_ratios(
    shadows: Sequence[ShadowProducts], updates: Sequence[UpdateProducts]
) -> Float[Tensor, " records"]:
    """Return the log-likelihood ratio of each record's membership in one target's data.

    Model: an update is normal. Its mean is that of the shadow models, plus s d for a member
    with direction d. Its covariance is v I + a S, where S is that of the shadow models. Then

        ratio = s d' C u - s^2 d' C d / 2,   C = (v I + a S)^-1,

    for the update u minus the mean. The noise v is measured on the update itself, outside of
    the span of shadow updates, so unknown noise of a defense counts too. The scale s is fitted
    to shadow models with known members. The strength a is chosen among `STRENGTHS`: one half of
    the shadow models gives S, and the other half shows how well members are ranked. Rounds are
    one long vector, as a shadow model keeps its examples.

    Args:
        shadows: for each round.
        updates: for each round, the one update of the target.

    Raises:
        NeedsError: if no shadow model trained on any record.

    """
    scale = fit_scale(shadows)
    strength = choose_strength(shadows, scale)
    noise = [noise_variance(*both) for both in zip(shadows, updates, strict=True)]
    ratios = ratios_at(shadows, updates, [float(one) for one in noise], scale, strength)
    return ratios[0].clamp(-MAX_RATIO, MAX_RATIO)


def fit_scale(shadows: Sequence[ShadowProducts]) -> float:
    """Return the least-squares scale of directions in the updates of shadow models.

    The mean product of a direction with in-models, minus that with out-models, is s times the
    direction's square. It is at least `MIN_RELATIVE_SCALE`.
    """
    gained, squares, sizes = 0.0, 0.0, 0.0
    for one in shadows:
        count_in = one.is_member.sum(0)
        count_out = len(one.is_member) - count_in
        has_both = (count_in > 0) & (count_out > 0)
        total_in = (one.shadow_records * one.is_member).sum(0)
        mean_out = (one.shadow_records.sum(0) - total_in) / count_out.clamp(min=1)
        gained += float((total_in - count_in * mean_out)[has_both].sum())
        squares += float((count_in * one.record_squares)[has_both].sum())
        sizes += float(one.among_shadows.diagonal().mean())
    if not squares:
        raise NeedsError(
            "gradient_membership needs a record that some shadow models trained on and others "
            "did not: set more models, or more candidate records"
        )
    mean_square = sum(float(one.record_squares.mean()) for one in shadows)
    least = MIN_RELATIVE_SCALE * sqrt(sizes / mean_square)
    return max(gained / squares, least)


def choose_strength(shadows: Sequence[ShadowProducts], scale: float) -> float:
    """Return the strength at which one half of shadow models best ranks the other's members."""
    halves = [_split(one) for one in shadows]
    firsts, seconds = [first for first, _ in halves], [second for _, second in halves]
    is_member = shadows[0].is_member[len(firsts[0].is_member) :]
    noise = [float(noise_variance(*both).median()) for both in halves]
    ranked = {
        strength: _mean_auc(ratios_at(firsts, seconds, noise, scale, strength), is_member)
        for strength in STRENGTHS
    }
    return max(ranked, key=lambda strength: ranked[strength])


def noise_variance(
    shadows: ShadowProducts, updates: UpdateProducts
) -> Float[Tensor, " updates"]:
    """Return each update's variance a parameter, outside of the span of shadow updates."""
    models = len(shadows.among_shadows)
    gram, products = shadows.among_shadows, updates.with_shadows
    # Centred updates are linearly dependent, so the matrix needs a ridge.
    ridge = 1e-6 * gram.diagonal().mean() + torch.finfo(gram.dtype).tiny
    solved = torch.linalg.solve(gram + ridge * torch.eye(models, dtype=gram.dtype), products.T)
    left = updates.squares - (products * solved.T).sum(1)
    left = torch.maximum(left, MIN_NOISE_SHARE * updates.squares)
    noise = left / max(shadows.parameters - models, 1)
    return noise.clamp(min=torch.finfo(noise.dtype).tiny ** 0.5)


def ratios_at(
    shadows: Sequence[ShadowProducts],
    updates: Sequence[UpdateProducts],
    noise: Sequence[float],
    scale: float,
    strength: float,
) -> Float[Tensor, "updates records"]:
    """Return the log-likelihood ratios at these settings, by the Woodbury identity.

    Args:
        shadows: for each round.
        updates: for each round, the same updates in the same order.
        noise: the variance a parameter, for each round.
        scale: the scale of directions.
        strength: how much of the shadows' variation counts as noise.

    """
    rounds = list(zip(shadows, updates, noise, strict=True))
    fit = scale * sum_of([one.with_records / v for _, one, v in rounds])
    length = scale**2 * sum_of([one.record_squares / v for one, _, v in rounds])
    if strength:
        gram = sum_of([one.among_shadows / v for one, _, v in rounds])
        directions = scale * sum_of([one.shadow_records / v for one, _, v in rounds])
        products = sum_of([one.with_shadows / v for _, one, v in rounds])
        weight = (len(gram) - 1) / strength
        solved = torch.linalg.solve(
            gram + weight * torch.eye(len(gram), dtype=gram.dtype), directions
        )
        fit = fit - products @ solved
        length = length - (directions * solved).sum(0)
    return fit - length / 2


def sum_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors of one shape."""
    return torch.stack(list(tensors)).sum(0)


def _split(shadows: ShadowProducts) -> tuple[ShadowProducts, UpdateProducts]:
    """Return the first half of the shadow models, and the second half as if they were targets.

    All updates are centred on the mean of the first half.
    """
    half = len(shadows.is_member) // 2
    gram, records = shadows.among_shadows, shadows.shadow_records
    to_mean = gram[:, :half].mean(1)
    gram = gram - to_mean - to_mean.unsqueeze(1) + to_mean[:half].mean()
    records = records - records[:half].mean(0)
    return (
        ShadowProducts(
            shadows.is_member[:half],
            gram[:half, :half],
            records[:half],
            shadows.record_squares,
            shadows.parameters,
        ),
        UpdateProducts(gram[half:, :half], records[half:], gram.diagonal()[half:]),
    )


def _mean_auc(
    ratios: Float[Tensor, "updates records"], is_member: Bool[Tensor, "updates records"]
) -> float:
    """Return the mean AUC over updates with members and non-members; .5 without any."""
    ranks: Int[Tensor, "updates records"] = ratios.argsort(1).argsort(1)
    members, records = is_member.sum(1), is_member.shape[1]
    has_both = (members > 0) & (members < records)
    pairs = members * (records - members)
    above = (ranks * is_member).sum(1) - members * (members - 1) // 2
    return float((above[has_both] / pairs[has_both]).mean()) if bool(has_both.any()) else 0.5
