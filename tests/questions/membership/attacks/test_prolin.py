"""PROLIN solves sums of linear activations: the equations are worked by hand."""

import numpy as np
import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.prolin import Prolin, Reading, _LinearModels

PAIRS = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])


def reading(activations: list[float]) -> Reading:
    """Return readings of three pairs; activations are -1 without a record and 1 with it."""
    means, variances = np.tile([-1.0, 1.0], (3, 1)), np.full((3, 2), 0.25)
    return Reading(np.array(activations), means, variances)


@pytest.mark.parametrize("likelihood", ["density", "log"])
@pytest.mark.parametrize("steps", [0, 10])
def test_the_client_in_the_sums_with_higher_activations_has_the_record(
    likelihood: str, steps: int
) -> None:
    # Client 0 has the record: sums of activations are 1 - 1, -1 - 1 and 1 - 1, so means are
    # 0, -1 and 0.
    attack = Prolin(penalty=0.0, likelihood=likelihood, steps=steps)  # type: ignore[arg-type]
    scores = attack.decide(PAIRS, reading([0.0, -1.0, 0.0]))
    assert (scores > 0).tolist() == [True, False, False]


def test_scores_are_sums_over_rounds_of_log_densities_or_densities() -> None:
    # Least squares gives client 0 the activation 1, and clients 1 and 2 the activation -1. Each
    # is in two rounds, at the mean of one distribution and 4 deviations from the other: the
    # logs differ by 16 / 2 in a round, and densities by 1 / (.5 sqrt(2 pi)) (1 - exp(-8)).
    logs = Prolin(penalty=0.0, likelihood="log", steps=0)
    assert logs.decide(PAIRS, reading([0.0, -1.0, 0.0])) == pytest.approx([16, -16, -16])
    density = 2 * (1 - np.exp(-8)) / (0.5 * np.sqrt(2 * np.pi))
    densities = Prolin(penalty=0.0, steps=0)
    found = densities.decide(PAIRS, reading([0.0, -1.0, 0.0]))
    assert found == pytest.approx([density, -density, -density])


def test_rounds_whose_linear_model_separates_nothing_have_no_weight() -> None:
    one = reading([0.0, -1.0, 0.0])
    blind = Reading(
        np.append(one.activations, 9.0),
        np.append(one.means, [[0.0, 0.0]], axis=0),
        np.append(one.variances, [[1.0, 1.0]], axis=0),
    )
    assert blind.separation()[3] == pytest.approx(0)
    attack = Prolin(penalty=0.0, likelihood="log", steps=0)
    weights = np.append(PAIRS, [[1.0, 1.0, 1.0]], axis=0)
    found = attack.decide(weights, blind)
    assert found == pytest.approx(attack.decide(PAIRS, one))


def test_linear_models_tell_updates_with_each_record_from_those_without() -> None:
    draws = torch.randn(160, 8, generator=torch.Generator().manual_seed(0))
    without, having = draws[:80], draws[80:].expand(2, -1, -1).clone()
    having[0, :, 0] += 4
    having[1, :, 1] += 4
    models = _LinearModels.fit(without, having, Seed(0))
    for record in (0, 1):
        of_without, of_having = (
            models.activations(one)[record] for one in (without, having[record])
        )
        assert float((of_having[:, None] > of_without).float().mean()) > 0.85
        assert models.means[record, 1] > models.means[record, 0] + 1
        # The activation of a mean is the mean of activations, so sums of updates can be read.
        of_mean = models.activations(having[record].mean(0, keepdim=True))[record]
        assert float(of_mean) == pytest.approx(float(of_having.mean()), abs=1e-4)
