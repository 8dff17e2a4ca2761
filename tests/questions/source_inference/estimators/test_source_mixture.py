"""Odds of sources follow from evidence whose scale is fitted to itself."""

import numpy as np
import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.source_inference.estimators.source_mixture import (
    SourceOdds,
    fit_source_odds,
)

CLIENTS, HELD, OUTSIDE = 5, 60, 300
SOURCES = np.repeat([*range(CLIENTS), CLIENTS], [*[HELD] * CLIENTS, OUTSIDE])
EVEN = torch.full((CLIENTS,), 1 / CLIENTS)


def odds_of(effect: float, scale: float = 1.0) -> SourceOdds:
    """Draw fits whose effect differs between records by a half of it."""
    draw = Seed(0).generator()
    strength = torch.rand(CLIENTS, len(SOURCES), generator=draw).double() * 4 + 0.1
    fit = strength.sqrt() * torch.randn(strength.shape, generator=draw).double()
    effects = effect * (1 + torch.randn(len(SOURCES), generator=draw).double() / 2)
    holds = torch.eye(CLIENTS + 1)[SOURCES][:, :CLIENTS].T.double()
    return fit_source_odds(scale * (fit + holds * effects * strength), strength, EVEN)


def test_the_client_that_holds_a_record_is_named_and_nobody_of_the_others() -> None:
    odds = odds_of(8.0)
    named = odds.log_odds.argmax(0).numpy()
    held = SOURCES < CLIENTS
    assert (named == SOURCES)[held].mean() > 0.85
    nobody = odds.nobody.numpy()
    assert nobody[held].mean() < 0.2
    assert nobody[~held].mean() > 0.8


def test_sure_evidence_gives_probabilities_from_0_to_1() -> None:
    nobody = odds_of(1e3).nobody
    assert bool(((nobody >= 0) & (nobody <= 1)).all())


def test_probabilities_are_as_often_right_as_they_say() -> None:
    odds = odds_of(2.0)
    chances = odds.log_odds.softmax(0).numpy()[:, SOURCES < CLIENTS]
    hits = chances.argmax(0) == SOURCES[SOURCES < CLIENTS]
    assert 0.4 < hits.mean() < 0.9
    assert chances.max(0).mean() == pytest.approx(hits.mean(), abs=0.05)
    assert float(odds.nobody.mean()) == pytest.approx(0.5, abs=0.1)


def test_without_a_leak_no_client_is_much_more_likely() -> None:
    assert float(odds_of(0.0).log_odds.softmax(0).max(0).values.mean()) < 0.4


def test_the_scale_of_fits_does_not_matter() -> None:
    one, other = odds_of(3.0), odds_of(3.0, scale=1e-3)
    assert torch.allclose(one.log_odds.softmax(0), other.log_odds.softmax(0), atol=1e-3)


def test_records_without_any_gradient_are_of_any_client() -> None:
    zeros = torch.zeros(CLIENTS, 4)
    odds = fit_source_odds(zeros, zeros, EVEN)
    assert torch.allclose(odds.log_odds.softmax(0), torch.full((CLIENTS, 4), 0.2).double())
    assert bool(odds.nobody.isfinite().all())


def test_the_prior_decides_where_evidence_does_not() -> None:
    zeros, prior = torch.zeros(2, 4), torch.tensor([0.9, 0.1])
    odds = fit_source_odds(zeros, zeros, prior)
    assert odds.log_odds.softmax(0)[0].tolist() == pytest.approx([0.9] * 4)
