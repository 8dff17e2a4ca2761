"""The noise of sums is measured on simulated clients."""

import numpy as np
import pytest

from overheard.auditing.inputs import Resources
from overheard.core.errors import NeedsError
from overheard.data.splits.dirichlet import Dirichlet
from overheard.planning.cohorts.measured_noise import measure_noise
from overheard.planning.cohorts.planned_design import propose_cohorts_of_plan
from overheard.plans.virtual_plan import VirtualPlan
from tests.auditing.plans import DATA, SERVER_THREAT, TINY, replace_tables

DATA_OF_SIX = DATA.model_copy(update={"clients": 6, "split": Dirichlet(alpha=1.0)})

PLAN = replace_tables(
    TINY,
    data=DATA_OF_SIX,
    threats=(SERVER_THREAT.model_copy(update={"virtual": VirtualPlan(clients=24)}),),
)

HERE = Resources(device="cpu", workers=1)


@pytest.mark.slow
def test_the_noise_of_a_plan_has_the_prior_of_its_split_and_gains_in_few_rounds():
    noise = measure_noise(PLAN, 3, 12, HERE)
    # Ten labels with alpha 1 each.
    assert noise.prior.sum() == pytest.approx(10, rel=0.25)
    assert noise.gains.shape == (10, 9)
    assert (noise.rounds[0], noise.rounds[-1]) == (0, 11)
    assert 0 <= noise.lasting <= 1
    assert noise.of_client > 0
    # Six clients of two federations, whose errors are around those of their federation.
    assert noise.measured is not None
    deviations = noise.measured.deviations
    assert noise.measured.shares.shape == (12, 10)
    assert np.allclose(deviations.reshape(2, 6, 9).mean(axis=1), 0)
    assert np.abs(deviations).max() > 0
    # The directions are a root of the covariance of a Dirichlet distribution.
    mean, total = noise.prior / noise.prior.sum(), noise.prior.sum()
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (1 + total)
    assert np.allclose(noise.directions @ noise.directions.T, covariance, atol=1e-9)


@pytest.mark.slow
def test_a_plan_gives_clients_cohort_and_rounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("overheard.planning.cohorts.predicted_error.PRIOR_DRAWS", 500)
    design = propose_cohorts_of_plan(PLAN, cohort=2, resources=HERE)
    assert (design.clients, design.cohort, design.rounds) == (6, 2, 2)
    assert any("simulated clients" in sentence for sentence in design.assumed)


def test_a_plan_without_auxiliary_examples_is_refused():
    plan = replace_tables(
        PLAN, threats=(SERVER_THREAT.model_copy(update={"knows": ("model", "recipe")}),)
    )
    with pytest.raises(NeedsError, match="auxiliary"):
        measure_noise(plan, 3, 2, HERE)
