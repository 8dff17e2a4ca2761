"""Noise of a stated size at the server, and readings that leave more or less of it."""

from collections.abc import Sequence

import torch

from overheard.algorithms.fed_avg import FedAvg
from overheard.consistency.proof import Reason
from overheard.consistency.statement import StatedStep
from overheard.core.messages import Update
from tests.consistency.runs import Model, Setting, TrueRun, check, minus, record, simulate

DEVIATION = 0.05
STATED = StatedStep(FedAvg(), noise=4 * DEVIATION)  # on the sum of four replies
SMALL = {"layer.weight": (4, 3), "layer.bias": (3,)}


class Noise:
    """Adds Gaussian noise to the plain mean."""

    def __init__(self, seed: int, deviation: float = DEVIATION) -> None:
        self.deviation = deviation
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, updates: Sequence[Update]) -> Model:
        return {
            name: torch.stack([each.delta[name] for each in updates]).mean(0)
            + self.deviation * torch.randn(one.shape, generator=self.generator)
            for name, one in updates[0].delta.items()
        }


def noisy_run(seed: int) -> TrueRun:
    return simulate(Setting(aggregate=Noise(seed), shapes=SMALL))


def after(run: TrueRun, number: int) -> Model:
    return run.models[min(number + 1, len(run.models) - 1)]


def exchanged(run: TrueRun, number: int) -> Model:
    return run.models[{1: 3, 3: 1}.get(number, number)]


def as_differences(run: TrueRun, number: int, local: Model, start: Model) -> Model:
    return minus(minus(local, run.models[number]), start)


def test_noise_of_the_stated_size_follows_in_a_model_of_fifteen_numbers() -> None:
    outcomes = [check(record(noisy_run(seed)), STATED).outcome for seed in range(20)]
    assert outcomes == ["follows"] * 20


def test_models_saved_after_the_aggregation_are_told_from_noise() -> None:
    for seed in range(10):
        proof = check(record(noisy_run(seed), model=after), STATED)
        assert proof.outcome == "contradicts"
        assert "after its aggregation" in proof.mend


def test_differences_read_as_weights_are_told_from_noise() -> None:
    for seed in range(10):
        proof = check(record(noisy_run(seed), as_differences), STATED)
        assert proof.outcome == "contradicts"
        assert "--kind differences" in proof.mend


def test_exchanged_models_leave_more_than_the_stated_noise() -> None:
    for seed in range(10):
        assert check(record(noisy_run(seed), model=exchanged), STATED).outcome != "follows"


def test_noise_that_hides_the_replies_cannot_be_told() -> None:
    # Changes of 0.1 under noise of 1 in fifteen numbers and five rounds.
    run = simulate(Setting(aggregate=Noise(0, 1.0), shapes=SMALL))
    proof = check(record(run), StatedStep(FedAvg(), noise=4.0))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.HIDDEN_BY_NOISE)
    assert not proof.allows_no_leak("updates")
    assert proof.allows_no_leak("means")
