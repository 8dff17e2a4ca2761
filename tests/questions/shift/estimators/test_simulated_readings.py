from dataclasses import replace

import torch

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.knowledge import Knowledge
from overheard.core.seeds import Seed
from overheard.questions.shift.estimators import simulated_readings
from overheard.questions.shift.estimators.simulated_readings import simulate_readings
from overheard.simulation.federations.design import FederationDesign
from tests.runs.two_clients import BUILD, DIGITS, MANY_STEPS

DESIGN = FederationDesign(2, 1, 1, 4, 2, (20, 20), (0.1,) * 10)


def known() -> Knowledge:
    return Knowledge(
        10, BUILD, recipe=MANY_STEPS, compute=ComputeSettings(cache=MemoryTensorCache())
    )


def bias_of(broadcasts, deltas) -> torch.Tensor:
    return torch.stack([delta["3.bias"] for delta in deltas])


def simulate(knowledge: Knowledge, read=bias_of, seed: int = 0):
    return simulate_readings(
        DESIGN,
        knowledge,
        BUILD,
        DIGITS.test.take(torch.arange(100)),
        read,
        Seed(seed),
        unshifted=3,
        shifted=2,
        reading="bias",
    )


def test_reads_every_federation_in_every_round_with_its_truth() -> None:
    found = simulate(known())
    assert found.readings.shape == (5, 4, 10)
    assert found.shifts.tolist() == [False] * 3 + [True] * 2
    assert torch.allclose(found.population.sum(-1), torch.ones(5, 4).double())
    assert torch.equal(found.population[0, 0], found.population[0, 3])
    assert not torch.equal(found.population[3, 0], found.population[3, 3])
    assert not torch.equal(found.true_shares[0, 0], found.true_shares[0, 3])


def test_the_same_simulation_is_not_run_twice() -> None:
    knowledge = known()
    first = simulate(knowledge)

    def refuse(broadcasts, deltas):
        raise AssertionError("read again")

    again = simulate(knowledge, refuse)
    assert torch.equal(first.readings, again.readings)
    assert first.key == again.key
    assert simulate(knowledge, seed=1).key != first.key
    other = replace(knowledge, recipe=replace(MANY_STEPS, rate=0.01))
    assert simulate(other).key != first.key


def test_large_models_are_simulated_a_few_at_a_time_with_the_same_result(monkeypatch) -> None:
    whole = simulate(known())
    monkeypatch.setattr(simulated_readings, "MAX_BYTES", 1)
    single = simulate(known())
    assert torch.allclose(whole.readings, single.readings, atol=1e-4)
