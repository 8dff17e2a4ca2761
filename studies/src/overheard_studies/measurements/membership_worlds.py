"""All attacks on membership in ten federations, on the same records and shadow models."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from overheard.auditing.audited_run import core_seconds
from overheard.auditing.simulate import knowledge, simulate
from overheard.core.attack import Attack, check_needs
from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard.plans.plan import Plan
from overheard.plans.registries import ATTACKS
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.glir import Glir
from overheard.questions.membership.attacks.probability_ratio import Rmia
from overheard.questions.membership.claim import Membership
from overheard_studies.measurements.audits import describe_plan, read_summary
from overheard_studies.plan_files import read_panels
from overheard_studies.study import Measurement, MeasurementRun, Panel, Study
from overheard_studies.values import ReproducedValue, make_value

FIRST = "lira"
"""The attack that trains the shadow models, whose seconds include them."""

VARIANTS = (FedMia("confidence"), Rmia(gamma=1.0), Glir(most_parameters=60_000))
"""Settings beside the defaults: published variants, and GLiR with the first layer of MLPs."""

SCORES = ("membership_auc", "tpr_at_1_percent", "tpr_at_0.1_percent")


def every_attack() -> tuple[Attack[Any], ...]:
    """Return every attack on membership that is found, `FIRST` first, and the variants."""
    found = [one() for one in ATTACKS.plugins().values() if one.claim_type is Membership]
    return (*sorted(found, key=lambda one: (one.name != FIRST, one.name)), *VARIANTS)


def membership_worlds() -> Study:
    """Return all attacks on membership in ten federations."""
    panels = tuple(
        replace(one, plan=partial(_with_every_attack, one))
        for one in read_panels("membership_worlds", lambda one: read_summary(one, *SCORES))
    )
    return Study(
        "membership_worlds",
        "Every attack on membership, in ten federations",
        "It repeats no paper. All attacks have their default settings, and share candidate "
        "records, auxiliary examples and, where they need them, shadow models. Half of a "
        "client's examples are candidates. The core seconds of an attack are those on the five "
        "clients of the first seed. Those of `lira`, which is the first, include the shadow "
        "models that it shares.",
        panels,
        describe_plan,
        measurements=tuple(
            Measurement(f"seconds_{one.key}", partial(_measure_seconds, one)) for one in panels
        ),
    )


def _with_every_attack(panel: Panel, quick: bool) -> Plan | None:
    plan = panel.plan(quick)
    if plan is None:
        return None
    (threat,) = plan.threats
    return plan.model_copy(
        update={"threats": (threat.model_copy(update={"attacks": every_attack()}),)}
    )


def _measure_seconds(panel: Panel, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Measure the core seconds of each attack on all clients of the first seed."""
    plan = panel.plan(run.quick)
    assert plan is not None
    (threat,) = plan.threats
    transcript, _ = simulate(plan, resources=run.resources)
    known, view = knowledge(plan, resources=run.resources), transcript.seen_by(SERVER)
    for attack in threat.attacks:
        begun, targets = core_seconds(), view.senders()
        try:
            for target in targets:
                check_needs(attack, view, target, known)
            attack.infer(view, targets, known, Seed(plan.seeds[0]))
        except NeedsError:
            continue
        ended = core_seconds()
        spent = None if begun is None or ended is None else ended - begun
        label = threat.attack_name(attack)
        name = f"{panel.key}_{label}_seconds".replace(" ", "_")
        yield make_value(name, f"{panel.name}; {label}: core seconds", spent, None, "lower")
