import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.questions.shift.estimators.change_point import (
    ErrorModel,
    change_evidence,
    draw_null_clients,
    fit_error_model,
    median_squared_step,
)


def model(spread: list[float], together: float, numbers: int = 1) -> ErrorModel:
    eye = torch.eye(numbers, dtype=torch.float64)
    return ErrorModel(torch.tensor(spread, dtype=torch.float64), together, eye, eye)


STEADY = torch.tensor(1.0, dtype=torch.float64)


def draw_errors(
    clients: int, spread: list[float], together: float, numbers: int
) -> torch.Tensor:
    """Draw errors from the model."""
    generator = torch.Generator().manual_seed(3)
    size = (clients, len(spread), numbers)
    independent = torch.randn(size, generator=generator, dtype=torch.float64)
    persistent = torch.randn(clients, 1, numbers, generator=generator, dtype=torch.float64)
    mixed = math.sqrt(together) * persistent + math.sqrt(1 - together) * independent
    return mixed * torch.tensor(spread, dtype=torch.float64)[:, None]


def test_estimates_the_deviation_and_the_correlation_from_virtual_clients() -> None:
    learned = fit_error_model(draw_errors(2000, [0.1, 0.2, 0.4], 0.5, 3))
    assert learned.round_deviation.tolist() == pytest.approx([0.1, 0.2, 0.4], rel=0.05)
    assert learned.correlation == pytest.approx(0.5, abs=0.05)
    white = learned.whiten(draw_errors(2000, [0.1, 0.2, 0.4], 0.5, 3)).flatten(0, 1)
    seen = white.T @ white / len(white)
    assert torch.allclose(seen, torch.eye(3, dtype=torch.float64), atol=0.1)


def test_errors_that_sum_to_zero_have_one_direction_less() -> None:
    errors = draw_errors(200, [1.0, 1.0], 0.2, 4)
    learned = fit_error_model(errors - errors.mean(2, keepdim=True))
    assert learned.whitener.shape == (4, 3)


def test_refuses_errors_that_are_all_zero() -> None:
    with pytest.raises(ValueError, match="differ"):
        fit_error_model(torch.zeros(8, 3, 2))


def test_rounds_with_equal_errors_have_equal_weights() -> None:
    # Independent: variance 4 / 4 rounds = 1. Half persistent: 4 * (0.5 + 0.5 / 4) = 2.5.
    assert model([2.0] * 4, 0.0).round_weights(slice(0, 4)).tolist() == pytest.approx(
        [0.25] * 4
    )
    assert model([2.0] * 4, 0.0).mean_variances(slice(0, 4)) == pytest.approx((0, 1))
    assert model([2.0] * 4, 0.5).mean_variances(slice(0, 4)) == pytest.approx((2, 0.5))


def test_a_round_with_twice_the_error_has_a_quarter_of_the_weight() -> None:
    # Independent errors: weights are as 1 / variance, 1 : 1/4; the variance is 1 / 1.25.
    fitted = model([1.0, 2.0], 0.0)
    assert fitted.round_weights(slice(0, 2)).tolist() == pytest.approx([0.8, 0.2])
    assert fitted.mean_variances(slice(0, 2)) == pytest.approx((0, 0.8))


def ratio_by_matrices(
    fitted: ErrorModel, track: torch.Tensor, s: int, t: int, unsteady: float
) -> float:
    """Compute the ratio of two weighted means from the full covariance matrix."""
    sides = []
    for part in (slice(0, s), slice(s, t + 1)):
        spread = fitted.round_deviation[part]
        persistent = fitted.correlation * torch.ones(
            len(spread), len(spread), dtype=torch.float64
        )
        independent = unsteady * (1 - fitted.correlation)
        matrix = persistent + independent * torch.eye(len(spread), dtype=torch.float64)
        weights = spread.pow(-2) / spread.pow(-2).sum()
        variance = weights @ (spread[:, None] * matrix * spread[None]) @ weights
        sides.append((weights @ track[part], variance))
    (before, loose), (after, wide) = sides
    return float((after - before).square().sum() / (loose + wide))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.1, 3.0), min_size=2, max_size=5),
    st.floats(0.0, 0.9),
    st.floats(1.0, 4.0),
    st.integers(0, 1000),
)
def test_the_evidence_is_the_largest_ratio_over_all_rounds_of_change(
    spread: list[float], together: float, unsteady: float, number: int
) -> None:
    fitted = model(spread, together, 2)
    generator = torch.Generator().manual_seed(number)
    track = torch.randn(len(spread), 2, generator=generator, dtype=torch.float64)
    change = change_evidence(
        fitted, fitted.whiten(track), torch.tensor(unsteady, dtype=torch.float64)
    )
    for place, t in enumerate(range(1, len(spread))):
        ratios = [ratio_by_matrices(fitted, track, s, t, unsteady) for s in range(1, t + 1)]
        assert float(change.ratio[place]) == pytest.approx(max(ratios), rel=1e-8, abs=1e-10)
        assert ratios[int(change.since[place]) - 1] == pytest.approx(max(ratios), abs=1e-8)


def test_finds_the_round_of_a_jump() -> None:
    fitted = model([1.0] * 6, 0.3)
    track = torch.tensor([0.0, 0.1, -0.1, 9.0, 9.1, 8.9], dtype=torch.float64)[:, None]
    change = change_evidence(fitted, fitted.whiten(track), STEADY)
    assert int(change.since[-1]) == 3
    assert float(change.ratio[1]) < 1
    assert float(change.ratio[2]) > 20


def test_a_constant_level_is_no_evidence() -> None:
    fitted = model([0.5, 1.0, 2.0], 0.4, 2)
    track = torch.tensor([3.0, -7.0], dtype=torch.float64).expand(3, 2)
    assert float(
        change_evidence(fitted, fitted.whiten(track), STEADY).ratio.max()
    ) == pytest.approx(0, abs=1e-12)


def test_the_median_squared_step_ignores_the_level_and_a_single_jump() -> None:
    # Steps 1, -1, 1, 9, -1 over a deviation of 2: squares are 0.25 but for one; median 0.25.
    fitted = model([2.0] * 6, 0.0)
    track = torch.tensor([5.0, 6.0, 5.0, 6.0, 15.0, 14.0], dtype=torch.float64)[:, None]
    assert float(median_squared_step(fitted, track)) == pytest.approx(0.25)
    assert float(median_squared_step(fitted, track + 100)) == pytest.approx(0.25)


def test_a_simulated_client_is_unchanged_until_an_exchange() -> None:
    places = draw_null_clients(50, 30, 400, Seed(0))
    assert places.shape == (400, 30)
    assert 0 <= int(places.min()) <= int(places.max()) < 50
    changes = (places[:, 1:] != places[:, :-1]).sum(1)
    # Some runs have no exchange, and some have one in nearly every round.
    assert int(changes.min()) == 0
    assert int(changes.max()) > 20


def test_runs_without_a_change_exceed_a_threshold_at_its_stated_rate() -> None:
    errors = draw_errors(4000, [1.0, 0.7, 0.5, 0.5, 0.6], 0.3, 3)
    learned, rounds = fit_error_model(errors[:2000]), torch.arange(5)
    imagined = change_evidence(
        learned,
        learned.whiten(errors[:2000])[draw_null_clients(2000, 5, 3000, Seed(1)), rounds],
        STEADY.expand(3000),
    )
    threshold = imagined.ratio.amax(1).quantile(0.95)
    fresh = change_evidence(
        learned,
        learned.whiten(errors[2000:])[draw_null_clients(2000, 5, 3000, Seed(2)), rounds],
        STEADY.expand(3000),
    )
    rate = float((fresh.ratio.amax(1) > threshold).double().mean())
    assert 0.03 < rate < 0.07
