"""How often the rules on noise fire on honest runs, and on how little less noise they do.

Run with `pytest -m nightly -s tests/doctor/recorded/test_false_alarms.py` to print the figures
of docs/doctor.md.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.doctor.recorded.diagnose import diagnose_run
from overheard.doctor.recorded.evidence import RunEvidence
from overheard.doctor.recorded.noise import TRAINED_MARGIN, noise_samples
from tests.doctor.recorded.runs import CENTRAL, LOCAL, OPACUS, WRAPPER, Drawn, evidence
from tests.doctor.recorded.test_rules import SGD

RUNS = 200

MEASURED = ("noise-too-small", "noise-repeats", "clip-exceeded", "joins-without-privacy")

EXAMPLES, INPUTS, CLASSES = 100, 50, 10


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def alarms(run: RunEvidence) -> set[str]:
    return {one.rule.id for one in diagnose_run(run).alarms} & set(MEASURED)


def noisy(kind: str, seed: int, noise: float = 1.0, *, repeats: bool = False) -> RunEvidence:
    seed_of = (lambda number, place: seed) if repeats else None
    # Updates have a length between nothing and the clip, and two clients join late.
    length = (0.01, 0.3, 1.0)[seed % 3]
    drawn = Drawn(
        length=length, noise=noise, seed=seed, seed_of=seed_of, joins=lambda place: place // 8
    )
    if kind == "at the client":
        return evidence(LOCAL, "LocalDpMod()", drawn)
    return evidence(CENTRAL, WRAPPER, replace(drawn, joins=lambda place: 0))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["at the client", "at the server"])
def test_honest_noise_raises_no_alarm_and_less_noise_does(kind: str):
    honest = sum(bool(alarms(noisy(kind, seed))) for seed in range(RUNS))
    found = {
        noise: sum(bool(alarms(noisy(kind, seed, noise))) for seed in range(20))
        for noise in (0.9, 0.8, 0.5)
    }
    again = sum("noise-repeats" in alarms(noisy(kind, s, repeats=True)) for s in range(20))
    say(f"\nnoise {kind}: false alarms {honest} of {RUNS}; of 20 found {found}, again {again}")
    assert honest == 0
    assert found[0.5] == again == 20


def trained(
    seed: int, rate: float, *, repeats: bool = False, noise: float = 1.0
) -> RunEvidence:
    """Return a run of logistic regressions that are really trained by DP-SGD."""
    generator = torch.Generator().manual_seed(seed)
    recipe = replace(SGD, rate=rate)
    data = {
        place: (
            torch.randn(EXAMPLES, INPUTS, generator=generator),
            torch.randint(CLASSES, (EXAMPLES,), generator=generator),
        )
        for place in range(5)
    }
    model = {"head.weight": torch.zeros(CLASSES, INPUTS)}
    messages = list[Message]()
    for number in range(4):
        readers = frozenset(map(client, data))
        messages.append(Message(number, SERVER, readers, Broadcast(model)))
        updates = []
        for place, (inputs, labels) in data.items():
            private = torch.Generator().manual_seed(
                seed if repeats else (seed * 1000 + number * 10 + place)
            )
            weight = train(model, inputs, labels, recipe, private, noise)
            updates.append(weight - model["head.weight"])
            update = Update({"head.weight": updates[-1]}, EXAMPLES)
            messages.append(Message(number, client(place), frozenset({SERVER}), update))
        model = {"head.weight": model["head.weight"] + torch.stack(updates).mean(0)}
    stated = evidence(OPACUS, "Opacus DP-SGD", recipe=recipe)
    return replace(stated, messages=tuple(messages), examples=EXAMPLES)


def train(
    model: Mapping[str, Tensor],
    inputs: Tensor,
    labels: Tensor,
    recipe: Recipe,
    generator: torch.Generator,
    noise: float,
) -> Tensor:
    """Return the weights after an epoch of Poisson batches with clip 1."""
    weight, targets = model["head.weight"], torch.eye(CLASSES)[labels]
    share = OPACUS.record_rate or 1.0
    for _ in range(OPACUS.steps):
        is_in = torch.rand(EXAMPLES, generator=generator) < share
        errors = (inputs[is_in] @ weight.T).softmax(1) - targets[is_in]
        gradients = torch.einsum("nc,ni->nci", errors, inputs[is_in])
        norms = gradients.flatten(1).norm(dim=1).clamp(min=1.0)
        total = (gradients / norms[:, None, None]).sum(0)
        drawn = torch.randn(weight.shape, generator=generator)
        weight = weight - recipe.rate * (total + noise * drawn) / (share * EXAMPLES)
    return weight


@pytest.mark.nightly
def test_honest_dp_sgd_raises_no_alarm():
    """At rates up to 2, where one step undoes much of the noise of another."""
    left, false, rates = list[float](), 0, (0.05, 0.5, 2.0)
    for seed in range(RUNS):
        run = trained(seed, rates[seed % 3])
        false += bool(alarms(run))
        (one,) = run.mechanisms
        samples = noise_samples(run, one)
        assert not isinstance(samples, str)
        left += [
            sample.measured_deviation / sample.deviation * TRAINED_MARGIN for sample in samples
        ]
    again = sum("noise-repeats" in alarms(trained(s, 0.5, repeats=True)) for s in range(20))
    without = sum("noise-too-small" in alarms(trained(s, 0.5, noise=0.1)) for s in range(20))
    say(f"\nDP-SGD: false alarms {false} of {RUNS}, least noise left {min(left):.3f}")
    say(f"of 20 found: the same noise {again}, a tenth of the noise {without}")
    assert false == 0
    assert min(left) > TRAINED_MARGIN + 0.2
