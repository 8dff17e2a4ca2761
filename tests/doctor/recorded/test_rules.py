"""Each rule fires on a bad run and not on a good one; good set-ups raise no alarm."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from overheard.core.accounting.accountant import account_mechanism
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Update
from overheard.core.recipe import Recipe
from overheard.doctor.recorded.diagnose import diagnose_run, run_rules
from overheard.doctor.recorded.evidence import Hidden, RunEvidence
from tests.doctor.recorded import runs
from tests.doctor.recorded.runs import (
    CENTRAL,
    LOCAL,
    OPACUS,
    WRAPPER,
    Drawn,
    evidence,
    faults,
)

RULES = {rule.name: rule for rule in run_rules()}

SGD = Recipe(rate=0.1, epochs=1, batch=20)
"""The recipe of the clients of `OPACUS` with 100 examples, in batches of a fifth."""


def local(drawn: Drawn | None = None, clip: float = 1.0, sensitivity: float = 1.0,
          epsilon: float = 0.9) -> RunEvidence:  # fmt: skip
    settings = (
        f"LocalDpMod(clipping_norm={clip}, sensitivity={sensitivity}, epsilon={epsilon}, "
        "delta=1e-05)"
    )
    return evidence(LOCAL, settings, drawn or Drawn())


def central(drawn: Drawn, settings: str = WRAPPER) -> RunEvidence:
    return evidence(CENTRAL, settings, drawn)


def opacus(
    drawn: Drawn | None = None, mechanism: Mechanism = OPACUS, recipe: Recipe | None = SGD
) -> RunEvidence:
    return evidence(mechanism, "Opacus DP-SGD", drawn or Drawn(), recipe=recipe)


def sends(**metrics: float) -> Drawn:
    return Drawn(metrics=lambda number, place: metrics)


def grows(number: int, place: int) -> Mapping[str, float]:
    return {"epsilon": 0.61 + 0.16 * number}


def same(number: int, place: int) -> Mapping[str, float]:
    return {"epsilon": 0.61}


def stating(epsilon: float, mechanism: Mechanism = OPACUS) -> RunEvidence:
    return opacus(mechanism=replace(mechanism, stated=epsilon))


def tuned(runs: int) -> RunEvidence:
    return replace(stating(9.0), tuning_runs=runs)


def rounded(by: float) -> Mechanism:
    """Return a mechanism whose epsilon is known exactly, and stated with an error."""
    plain = replace(LOCAL, stated_for="run")
    (known,) = evidence(plain, "LocalDp()").mechanisms
    assert known.accounted.recomputed is not None
    return replace(plain, stated=known.accounted.recomputed.pld + by)


ONE_ROUND = account_mechanism(OPACUS, RunParameters(1, 1.0, sampling="none")).recomputed

FLAT = replace(CENTRAL, bounded_at="client", unproven="")
"""Noise at the server on updates that clients clip."""

SHUFFLED = replace(OPACUS, record_sampling="shuffled")

LATE = Drawn(joins=lambda place: 2 if place == 9 else 0)

Made = Callable[[], RunEvidence]

BAD: dict[str, Made] = {
    # APPFL #349 and others: what is sent has half of the noise.
    "noise-too-small": lambda: local(Drawn(noise=0.5)),
    # torch.manual_seed in each message.
    "noise-repeats": lambda: local(Drawn(seed_of=lambda number, place: 7)),
    "clip-exceeded": lambda: local(Drawn(length=30.0)),
    # fl-dp-sa: noise for 20 clients, a simulation of 10 samples 4.
    "cohort-too-small": lambda: central(
        Drawn(clients=4), WRAPPER.replace("clients=10", "clients=20")
    ),
    # Flower's wrappers average by num-examples.
    "weights-by-counts": lambda: central(Drawn(examples=lambda place: 50 + 100 * place)),
    # Flower's Opacus example: an engine in each message.
    "accountant-per-round": lambda: opacus(Drawn(metrics=same)),
    "epsilon-of-one-round": lambda: stating(ONE_ROUND.one_round),
    "claim-below-accounting": lambda: stating(ONE_ROUND.one_round / 2),
    "no-noise-or-clip": lambda: stating(1.0, replace(OPACUS, bounded_at=None)),
    # NVFlare's hello-dp.
    "training-metrics-in-clear": lambda: opacus(sends(train_loss=0.1234)),
    "metrics-of-unknown-data": lambda: opacus(sends(accuracy=0.9)),
    "labels-in-clear": lambda: opacus(sends(count_0=30.0, count_1=70.0)),
    "counts-in-clear": opacus,
    "joins-without-privacy": lambda: opacus(
        replace(LATE, metrics=lambda number, place: {} if place == 9 else grows(number, place))
    ),
    "sensitivity-below-clip": lambda: local(clip=10.0),
    "classical-gaussian": lambda: local(epsilon=10.0),
    "shuffled-as-poisson": lambda: stating(ONE_ROUND.one_round * 2, SHUFFLED),
    "delta-too-large": lambda: opacus(mechanism=replace(OPACUS, delta=0.02)),
    "tuned-on-private-data": lambda: tuned(20),
    # A float32 norm that is clipped to 1.
    "clip-rounded-up": lambda: evidence(FLAT, "DpFedavg()", Drawn(length=1 + 1e-6)),
    "epsilon-rounded-down": lambda: evidence(rounded(-0.005), "LocalDp()"),
}

GOOD: dict[str, Made] = {
    "noise-too-small": local,
    "noise-repeats": local,
    "clip-exceeded": local,
    "cohort-too-small": lambda: central(Drawn()),
    "weights-by-counts": lambda: central(Drawn()),
    # Flower's e2e-opacus: one engine over all rounds.
    "accountant-per-round": lambda: opacus(Drawn(metrics=grows)),
    "epsilon-of-one-round": lambda: stating(ONE_ROUND.one_round * 3),
    "claim-below-accounting": lambda: stating(ONE_ROUND.one_round * 3),
    "no-noise-or-clip": lambda: stating(9.0),
    "training-metrics-in-clear": lambda: opacus(sends(test_loss=0.1234)),
    "metrics-of-unknown-data": lambda: opacus(sends(test_accuracy=0.9)),
    "labels-in-clear": lambda: opacus(sends(count_0=31.0, count_1=70.0)),
    "counts-in-clear": lambda: opacus(Drawn(examples=lambda place: None)),
    "joins-without-privacy": lambda: opacus(replace(LATE, metrics=grows)),
    "sensitivity-below-clip": lambda: local(clip=1.0),
    "classical-gaussian": lambda: local(epsilon=4.0),
    "shuffled-as-poisson": lambda: stating(50.0, SHUFFLED),
    "delta-too-large": opacus,
    "tuned-on-private-data": lambda: tuned(1),
    "clip-rounded-up": lambda: evidence(FLAT, "DpFedavg()", Drawn(length=1 - 1e-6)),
    "epsilon-rounded-down": lambda: evidence(rounded(0.005), "LocalDp()"),
}


def test_every_rule_has_a_bad_and_a_good_run():
    assert BAD.keys() == RULES.keys()
    assert GOOD.keys() == RULES.keys()


@pytest.mark.parametrize("name", BAD)
def test_fires_on_a_bad_run_and_not_on_a_good_one(name: str):
    assert faults(RULES[name], BAD[name]())
    assert faults(RULES[name], GOOD[name]()) == ()


def nvflare(number: int, place: int) -> Mapping[str, float]:
    held_out = {"accuracy": 0.9, "f1_score": 0.5, "precision": 0.5, "recall": 0.5}
    return {**held_out, "privacy_epsilon": 0.2 + 0.1 * number}


E2E = replace(OPACUS, noise_multiplier=0.4, clip=1.2)

GOOD_SETUPS: dict[str, Made] = {
    # It reports the number of its batches as that of examples.
    "Flower's e2e-opacus": lambda: opacus(
        Drawn(clients=2, examples=lambda place: 5, metrics=grows),
        E2E,
        Recipe(rate=0.001, epochs=1, batch=32, momentum=0.9),
    ),
    "FL4Health, instance level": lambda: opacus(
        Drawn(metrics=lambda number, place: {"accuracy": 0.4})
    ),
    "Flower's wrapper, equal counts": lambda: central(Drawn()),
    "NVFlare's DP recipe": lambda: opacus(
        Drawn(examples=lambda place: None, metrics=nvflare),
        recipe=Recipe(rate=0.001, epochs=1, batch=64, optimizer="adam"),
    ),
    "a client of JAX Privacy": lambda: opacus(mechanism=replace(OPACUS, stated=9.0)),
}


@pytest.mark.parametrize("name", GOOD_SETUPS)
def test_good_setups_raise_no_alarm(name: str):
    assert diagnose_run(GOOD_SETUPS[name]()).alarms == ()


def test_says_what_it_cannot_see():
    central_run = replace(central(Drawn()), algorithm="")
    assert isinstance(RULES["noise-too-small"].examine(central_run), Hidden)
    unknown = opacus(recipe=None)
    found = diagnose_run(unknown)
    assert "noise-too-small" in {one.rule.id for one in found.unseen}


@pytest.mark.parametrize("name", ["noise-too-small", "noise-repeats"])
@pytest.mark.parametrize("filling", [None, math.nan, math.inf])
def test_says_that_few_finite_numbers_tell_no_noise(
    monkeypatch: pytest.MonkeyPatch, name: str, filling: float | None
):
    shapes = {"layer.weight": (4, 10)} if filling is None else runs.SHAPES
    monkeypatch.setattr(runs, "SHAPES", shapes)
    run = evidence(LOCAL, "LocalDpMod()", Drawn(noise=0.0))
    for message in run.messages:
        if filling is not None and isinstance(message.body, Update):
            for tensor in message.body.delta.values():
                tensor.fill_(filling)
    assert isinstance(RULES[name].examine(run), Hidden)


def test_an_update_that_is_no_number_exceeds_every_clip():
    run = evidence(FLAT, "DpFedavg()", Drawn())
    update = next(one.body for one in run.messages if isinstance(one.body, Update))
    update.delta["layer.bias"][0] = math.nan
    assert faults(RULES["clip-exceeded"], run)


def test_noise_of_the_server_is_measured_too():
    less, again = Drawn(noise=0.5), Drawn(seed_of=lambda number, place: 7)
    assert faults(RULES["noise-too-small"], central(less))
    assert faults(RULES["noise-repeats"], central(again))
    for name in ("noise-too-small", "noise-repeats"):
        assert faults(RULES[name], central(Drawn())) == ()


def test_noise_of_dp_sgd_is_measured_by_its_recipe():
    assert faults(RULES["noise-too-small"], opacus(Drawn(noise=0.2, length=0.01)))
    same_noise = Drawn(seed_of=lambda number, place: place, length=0.01)
    assert faults(RULES["noise-repeats"], opacus(same_noise))
    assert faults(RULES["noise-repeats"], opacus(Drawn(length=0.01))) == ()


def test_a_late_client_without_noise_is_found_without_reports():
    without = replace(LATE, quiet=lambda number, place: place == 9, length=0.01)
    assert faults(RULES["joins-without-privacy"], opacus(without))
    assert faults(RULES["joins-without-privacy"], opacus(replace(LATE, length=0.01))) == ()


def test_says_who_is_protected_from_whom():
    at_server, at_client = diagnose_run(central(Drawn())), diagnose_run(opacus())
    assert any("proves nothing against the server" in note for note in at_server.notes)
    assert any("the server included" in note for note in at_client.notes)
    assert any("sum of their epsilons" in note for note in at_client.notes)
