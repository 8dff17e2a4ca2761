"""GLiR asks how unlikely an update is for a client that did not train on a record."""

from dataclasses import replace
from math import exp, log

import pytest
import torch
from scipy.stats import ncx2

from overheard.core.errors import NeedsError
from overheard.core.messages import Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.glir import (
    Glir,
    GradientSample,
    last_parameters,
    log_minus_log_below,
    mean_gradient,
)
from tests.questions.membership.attacks.test_lira import figure


def test_the_statistics_are_distances_by_the_inverse_covariance() -> None:
    generator = torch.Generator().manual_seed(0)
    gradients = torch.randn(12, 4, generator=generator, dtype=torch.float64)
    mean = torch.randn(4, generator=generator, dtype=torch.float64)
    sample = GradientSample(gradients, 3, ridge=0.1)
    covariance = torch.cov(gradients.T, correction=0)
    ridge = 0.1 * covariance.trace() / 4
    inverse = torch.linalg.inv(covariance + ridge * torch.eye(4))
    k, t = sample.statistics(mean, examples=7)
    for row, (one_k, one_t) in enumerate(zip(k, t, strict=True)):
        own, other = gradients[9 + row] - gradients.mean(0), mean - gradients[9 + row]
        assert float(one_k) == pytest.approx(float(own @ inverse @ own))
        assert float(one_t) == pytest.approx(6 * float(other @ inverse @ other))
    assert sample.degrees == pytest.approx(float((covariance @ inverse).trace()))


def test_probabilities_too_small_for_a_number_keep_their_order() -> None:
    values = torch.tensor([1.0, 5.0, 300.0, 2000.0, 9000.0, 1e5]).double().numpy()
    degrees, noncentrality = 300.0, torch.full((6,), 400.0).double().numpy()
    found = log_minus_log_below(values, degrees, noncentrality)
    assert (found[:-1] > found[1:]).all()
    assert found[2] == pytest.approx(log(-ncx2.logcdf(300.0, 300.0, 400.0)))
    assert exp(found[3]) == pytest.approx(ncx2.sf(2000.0, 300.0, 400.0))
    # Far above, Sankaran's approximation is the only value; near, it agrees with the exact one.
    assert found[-1] < -1000


def test_the_mean_gradient_divides_by_the_rate_of_all_steps() -> None:
    update = Update({"w": torch.tensor([[-6.0, 3.0]]), "b": torch.tensor([12.0])}, 5)
    # Two epochs of batches of 2, 2 and 1 are six steps; momentum .5 doubles each: .1 * 6 * 2.
    recipe = Recipe(rate=0.1, epochs=2, batch=2, momentum=0.5)
    assert mean_gradient(update, ("b", "w"), recipe, 5).tolist() == pytest.approx(
        [-10.0, 5.0, -2.5]
    )


def test_reads_the_last_tensors_that_are_small_enough() -> None:
    tensors = {
        name: torch.zeros(size) for name, size in (("a", 9), ("b", 3), ("c", 8), ("d", 2))
    }
    assert last_parameters(tensors, 13) == ("d", "c", "b")
    assert last_parameters(tensors, 1) == ("d", "c")


def test_finds_members_and_reads_sums_of_gradients_alone(by_heart) -> None:
    assert figure(by_heart, Glir(), "membership_auc") > 0.95
    # The mean of four clients has as many steps as one of them: .92, and .74 for four times.
    assert figure(by_heart, Glir(), "membership_auc", COHORT) > 0.85
    view, known = by_heart.transcript.seen_by(SERVER), by_heart.knowledge
    adam = replace(known, recipe=replace(known.recipe, optimizer="adam"))
    with pytest.raises(NeedsError, match="train with sgd"):
        Glir().infer(view, (client(0),), adam, Seed(0))
