"""Simulated runs are read as the real one, and one simulation serves all comparisons."""

import pytest
import torch
from torch import Tensor

from overheard.core.compute_settings import MemoryTensorCache, TensorCache
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, client
from overheard.core.view import View
from overheard.questions.shift.estimators.model_comparisons import (
    change_comparison,
    standard_comparisons,
    validation_comparison,
)
from overheard.questions.shift.estimators.trend_reader import series_of_target, simulate_series
from overheard.simulation.target_groups import group_targets
from tests.runs.two_clients import (
    SHORT_ROUNDS,
    knowledge_of_many_steps,
    simulate_many_steps,
)

GRADIENTS = change_comparison("gradients", "cosine")
LOSS = validation_comparison("loss")


class CountingCache(TensorCache):
    """Counts what is saved."""

    def __init__(self) -> None:
        self.inner, self.saved = MemoryTensorCache(), list[str]()

    def load(self, key: str) -> dict[str, Tensor] | None:
        return self.inner.load(key)

    def save(self, key: str, tensors: dict[str, Tensor]) -> None:
        self.saved.append(key)
        self.inner.save(key, tensors)


@pytest.fixture(scope="module")
def view() -> View:
    return simulate_many_steps(None, 3).seen_by(client(0))


def simulate(view: View, knowledge: Knowledge, comparison, runs: int = 8):
    (group,) = group_targets(view, (COHORT,), len(view.messages))
    return simulate_series(view, knowledge, knowledge, group, comparison, runs)


def test_simulated_runs_have_the_rounds_of_the_real_one_and_differ(view: View) -> None:
    knowledge = knowledge_of_many_steps()
    runs = simulate(view, knowledge, LOSS)
    real = series_of_target(view, COHORT, LOSS.build(knowledge), extract=True)
    assert len(runs) == 8
    assert all(run.keys() == real.keys() for run in runs)
    assert len(real) == SHORT_ROUNDS
    last = [run[SHORT_ROUNDS - 1] for run in runs]
    assert len(set(last)) == 8
    # Clients learn in simulated runs as in the real one.
    assert all(run[SHORT_ROUNDS - 1] < run[0] for run in runs)
    assert max(last) < real[0]


@pytest.mark.slow
def test_one_simulation_serves_all_standard_comparisons(view: View) -> None:
    cache, count = CountingCache(), len(standard_comparisons(knowledge_of_many_steps()))
    first = simulate(view, knowledge_of_many_steps(cache=cache), GRADIENTS)
    assert len(cache.saved) == count
    loss = simulate(view, knowledge_of_many_steps(cache=cache), LOSS)
    assert simulate(view, knowledge_of_many_steps(cache=cache), GRADIENTS) == first
    assert len(cache.saved) == count
    # The same as without a cache, and of two models fewer.
    assert simulate(view, knowledge_of_many_steps(), LOSS) == loss
    assert [min(run) for run in first] == [min(run) + 2 for run in loss]
    # Another number of runs, or another layer, is another simulation.
    simulate(view, knowledge_of_many_steps(cache=cache), LOSS, runs=9)
    assert len(cache.saved) == 2 * count
    layer = change_comparison("weights", "cosine", layer="9")
    with pytest.raises(NeedsError, match="no such layer"):
        simulate(view, knowledge_of_many_steps(cache=cache), layer)


@pytest.mark.slow
def test_more_runs_do_not_change_the_first_ones(view: View) -> None:
    eight, nine = (simulate(view, knowledge_of_many_steps(), LOSS, runs) for runs in (8, 9))
    for one, other in zip(eight, nine, strict=False):
        assert torch.allclose(
            torch.tensor(list(one.values())), torch.tensor(list(other.values())), atol=1e-5
        )


def test_without_classes_no_comparison_asks_for_an_accuracy() -> None:
    names = [one.name for one in standard_comparisons(Knowledge(classes=1, kind="regression"))]
    assert "('validation', 'loss')" in names
    assert not any("accuracy" in name for name in names)
    with pytest.raises(NeedsError, match="a task with classes"):
        validation_comparison("accuracy").build(Knowledge(classes=1, kind="regression"))
