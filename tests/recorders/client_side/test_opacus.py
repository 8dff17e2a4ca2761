"""What clients of Opacus state, with stand-ins that have its public attributes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from overheard.core.accounting.composed_steps import NoisySteps
from overheard.core.accounting.stated_steps import read_stated_steps
from overheard.recorders.client_side.opacus import record_dp

DATA = TensorDataset(torch.zeros(40, 1))


@dataclass(eq=False)
class PrvAccountant:
    """Counts as Opacus does: equal steps add to the last entry of the history."""

    history: list[tuple[float, float, int]] = field(default_factory=list)

    def mechanism(self) -> str:
        return "prv"

    def step(self, noise: float, rate: float, times: int = 1) -> None:
        before = 0
        if self.history and self.history[-1][:2] == (noise, rate):
            before = self.history.pop()[2]
        self.history.append((noise, rate, before + times))


@dataclass
class Engine:
    accountant: PrvAccountant = field(default_factory=PrvAccountant)


@dataclass
class DpOptimizer:
    noise_multiplier: float = 1.0
    max_grad_norm: float = 1.5


@dataclass
class DpDataLoader:
    sample_rate: float = 0.1
    batch_sampler: object = None


def stated(
    engine: Engine, loader: object = DpDataLoader(), steps_before: int = 0
) -> Sequence[NoisySteps]:
    metrics = record_dp(engine, DpOptimizer(), loader, steps_before=steps_before)
    found = read_stated_steps(metrics)
    assert found is not None
    assert (found.clip, found.accountant) == (1.5, "prv")
    return found.steps


def test_each_message_states_the_steps_since_the_last_one() -> None:
    engine = Engine()
    engine.accountant.step(1.0, 0.1, 10)
    assert stated(engine) == (NoisySteps(1.0, "poisson", 0.1, 10),)
    # The same engine goes on, then with other noise.
    engine.accountant.step(1.0, 0.1, 4)
    engine.accountant.step(0.5, 0.1, 3)
    assert stated(engine) == (
        NoisySteps(1.0, "poisson", 0.1, 4),
        NoisySteps(0.5, "poisson", 0.1, 3),
    )
    # A new engine for each message starts again.
    other = Engine()
    other.accountant.step(1.0, 0.1, 10)
    assert stated(other) == (NoisySteps(1.0, "poisson", 0.1, 10),)


def test_steps_of_a_loaded_accountant_are_not_stated_again() -> None:
    engine = Engine(PrvAccountant([(1.0, 0.1, 10)]))
    engine.accountant.step(1.0, 0.1, 10)
    assert stated(engine, steps_before=10) == (NoisySteps(1.0, "poisson", 0.1, 10),)


@pytest.mark.parametrize(
    ("loader", "sampling"),
    [
        (DpDataLoader(), "poisson"),
        (DpDataLoader(sample_rate=0.0, batch_sampler=DpDataLoader()), "poisson"),
        (DataLoader(DATA, batch_size=4, shuffle=True), "shuffled"),
        (DataLoader(DATA, batch_size=4), "shuffled"),
    ],
)
def test_poisson_and_shuffled_batches_are_told_from_each_other(
    loader: object, sampling: str
) -> None:
    engine = Engine()
    engine.accountant.step(1.0, 0.1, 10)
    assert [one.sampling for one in stated(engine, loader)] == [sampling]


def test_other_samplings_and_an_engine_without_steps_are_problems() -> None:
    weighted = DataLoader(DATA, sampler=WeightedRandomSampler([1.0] * 40, 40), batch_size=4)
    engine = Engine()
    assert read_stated_steps(record_dp(engine, DpOptimizer(), DpDataLoader())) is not None
    for loader, problem in (
        (DpDataLoader(), "states no steps with noise"),
        (weighted, "states no sampling that accounting covers"),
    ):
        found = read_stated_steps(record_dp(engine, DpOptimizer(), loader))
        assert found is not None
        assert (found.steps, found.problem) == ((), problem)
