"""The bound of epsilon from canaries with crafted gradients, beside that of other canaries."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from time import process_time
from typing import Literal

import numpy as np

from overheard.auditing.run import audit
from overheard.core.attack import Attack
from overheard.core.defense import Defense
from overheard.core.parties import SERVER
from overheard.data.datasets.mnist import Mnist
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.iid import Iid
from overheard.defenses.dp_sgd import DpSgd
from overheard.defenses.local_dp import LocalDp
from overheard.disk.folders import remove_folder
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.epsilon_plan import EpsilonPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.crafted_gradients import CraftedGradients
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership
from overheard.questions.membership.claim import Membership
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.conclusion import Conclusion
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

SEEDS = (600, 601, 602, 603, 604)
"""The attack was written with the seed 1."""

Kind = Literal["labelled", "mislabelled", "crafted"]

KINDS: Mapping[Kind, Attack[Membership]] = {
    "labelled": WhitenedMembership(),
    "mislabelled": WhitenedMembership(),
    "crafted": CraftedGradients(),
}
"""The attack that reads each kind of canary, the only one of its audits."""

MECHANISMS: Mapping[str, tuple[Defense, int, int]] = {
    "dp_sgd_0.7": (DpSgd(1.0, 0.7, 1e-5, 10), 1, 500),
    "dp_sgd_1": (DpSgd(1.0, 1.0, 1e-5, 10), 1, 500),
    "local_dp_1": (LocalDp(1.0, 1.0, 1e-5), 100, 1),
}
"""With the number of clients, and of the canaries that each gets on average: those of one
client share the clip of its update."""

ROUNDS = 5


def _plan(name: str, kind: Kind, seed: int) -> Plan:
    defense, clients, members = MECHANISMS[name]
    return Plan(
        seeds=(seed,),
        data=DataPlan(
            source=Mnist(shrink=2),
            split=Iid(),
            clients=clients,
            examples=500 // clients + 15,
            auxiliary_per_class=30,
            test=500,
            candidates=CandidateSettings(members, members * clients, kind),
        ),
        training=TrainingPlan(model=Mlp((64,)), rounds=ROUNDS, epochs=1, rate=0.1, batch=20),
        arms=(ArmPlan(name="noise", defenses=(defense,)),),
        threats=(ThreatPlan(attacks=(KINDS[kind],), by_round=False),),
        # The only attack: no half of the canaries is needed to choose it.
        epsilon=EpsilonPlan(attack=KINDS[kind].name),
    )


def _measure(name: str, kind: Kind, run: MeasurementRun) -> Iterable[ReproducedValue]:
    """Yield the mean bound over runs, each of which has its own."""
    begun, bounds, claimed, canaries = process_time(), [], 0.0, 0
    seeds = SEEDS[:2] if run.quick else SEEDS
    for seed in seeds:
        folder = run.folder / "running"
        remove_folder(folder, inside=run.folder)
        found = audit(_plan(name, kind, seed), folder, resources=run.resources)
        (line,) = (one for one in epsilon_results(found) if one.observers == (SERVER,))
        assert line.lower_bound is not None
        bounds.append(line.lower_bound.epsilon)
        claimed = line.upper_bound or 0.0
        canaries = line.lower_bound.members + line.lower_bound.non_members
        remove_folder(folder, inside=run.folder)
    mean = estimate_mean(np.array(bounds), np.arange(len(seeds)))
    defense, clients, _ = MECHANISMS[name]
    words = (
        f"{defense!r}, {clients} clients, MNIST 14 x 14, MLP 64, {ROUNDS} rounds, {canaries} "
        f"canaries, recomputed epsilon {claimed:.2f}, {len(seeds)} runs; {kind} canaries read "
        f"by {KINDS[kind].name}"
    )
    yield make_value(f"{name}_{kind}", f"{words}: mean lower bound at 95 %", mean)
    yield make_value(f"{name}_{kind}_least", f"{words}: smallest of the runs", min(bounds))
    seconds = process_time() - begun
    yield make_value(f"{name}_{kind}_seconds", f"{words}: core seconds", seconds)


def _ratios(name: str, runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    """Return how much the crafted canaries prove beyond twice what the best others do."""
    by_name = {one.name: one for one in values}
    crafted = by_name.get(f"{name}_crafted")
    others = [by_name.get(f"{name}_{kind}") for kind in KINDS if kind != "crafted"]
    if crafted is None or crafted.value is None or crafted.low is None:
        return {"beyond twice": None}
    known = [one.high for one in others if one is not None and one.high is not None]
    if len(known) < len(others):
        return {"beyond twice": None}
    double = 2 * max(known)
    high = crafted.value if crafted.high is None else crafted.high
    return {
        "beyond twice": Estimate(crafted.value - double, crafted.low - double, high - double)
    }


def crafted_canaries() -> Study:
    """Return what crafted gradients prove beside plain canaries; ten minutes of one core."""
    return Study(
        "crafted_canaries",
        "Lower bounds of epsilon from canaries with crafted gradients",
        "It repeats no paper. The same number of canaries, given by a fair coin, with the same "
        "bound and the same rule for the number of guesses; the kind of the canary and the "
        "attack that reads it differ.",
        measurements=tuple(
            Measurement(f"{name}_{kind}", partial(_measure, name, kind))
            for name, kind in product(MECHANISMS, KINDS)
        ),
        conclusions=tuple(
            Conclusion(
                f"twice_{name}",
                f"{name}: crafted canaries prove at least twice what the best others do.",
                partial(_ratios, name),
                "above",
                0.0,
                words="mean bound, less twice the upper end of that of the best others",
            )
            for name in MECHANISMS
        ),
    )
