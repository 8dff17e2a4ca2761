"""Scores of claimed numbers, the truth that they are compared with, and its form in files."""

from dataclasses import replace

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from overheard.core.examples import without_classes
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, client
from overheard.core.truth import GroundTruth, Without
from overheard.questions.target_distribution.claim import LEVELS, TargetDistribution
from overheard.questions.target_distribution.scorer import TargetDistributionScorer
from overheard.questions.target_distribution.true_facts import (
    ClientTargets,
    state_targets,
    weighted_quantiles,
)

ZERO_TO_TEN = torch.arange(11.0)[:, None]
STATED = {
    client(0): state_targets(client(0), ZERO_TO_TEN),
    client(1): state_targets(client(1), ZERO_TO_TEN[:1] + 105),
}


def test_scores_are_in_deviations_of_the_attackers_examples():
    claim = TargetDistribution(
        torch.tensor([7.0]), torch.tensor([[1.0, 5.0, 11.0]]), torch.tensor([4.0])
    )
    scorer, truth = TargetDistributionScorer(), GroundTruth(Facts(ClientTargets(STATED)))
    true = scorer.true_claim(truth, client(0), (0,), claim)
    assert true.means.tolist() == [5.0]
    assert true.numbers() == pytest.approx((5, 1, 5, 9), abs=0.3)
    auxiliary = without_classes(torch.zeros(3, 1), torch.tensor([[1.0], [5.0], [9.0]]))
    knowledge = Knowledge(1, auxiliary=auxiliary, kind="regression")
    mean, pinball = scorer.score(claim, true, scorer.guesses(true, knowledge))
    # The mean is 2 too high, half a deviation; the guess has the true mean.
    assert (mean.value, mean.best_uninformed) == (0.5, 0.0)
    # The quantile at .9 is 2 too high, which counts by .1; 3 quantiles, deviations of 4.
    assert pinball.value == pytest.approx(0.1 * 2 / 4 / 3, abs=0.03)


def test_the_cohort_has_all_examples_of_its_clients():
    fact = ClientTargets(STATED)
    # Eleven examples with the mean 5, and one of 105.
    assert fact.means_of(COHORT).tolist() == pytest.approx([(11 * 5 + 105) / 12])
    points, weights = fact.sample_of(COHORT)
    median = weighted_quantiles(points, weights, LEVELS)[0, 1]
    assert float(median) == pytest.approx(5.5, abs=0.6)
    alone = fact.renamed(Without([client(1)]))
    assert alone is not None
    assert alone.means_of(COHORT).tolist() == [5.0]


def test_truth_json_states_what_it_read():
    fact = ClientTargets(STATED)
    form = TypeAdapter(ClientTargets.form)
    stored = form.dump_json(fact.to_json())
    assert ClientTargets.from_json(form.validate_json(stored)) == fact
    with pytest.raises(ValueError, match="twice"):
        ClientTargets.from_json((STATED[client(0)], STATED[client(0)]))


def test_truth_json_states_mean_and_quantiles_in_the_same_units():
    stated = STATED[client(0)]
    (number,) = stated.numbers
    for mean, why in ((50.0, "mean of 50, but .* from 0 to 10"), (1e39, "finite in 32 bits")):
        wrong = replace(stated, numbers=(replace(number, mean=mean),))
        with pytest.raises(ValueError, match=why):
            ClientTargets.from_json((wrong,))
    negative = TypeAdapter(ClientTargets.form).dump_json((replace(stated, examples=-1),))
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        TypeAdapter(ClientTargets.form).validate_json(negative)
