"""The audits of Whispers' experiments: one federation, and virtual clients of its kind."""

from collections.abc import Sequence

from overheard.papers.reading import ReadingPlace
from overheard.papers.whispers.benchmark import WhispersSize
from overheard.papers.whispers.methods import METHODS, Method, attacks_of
from overheard.papers.whispers.scenario import Scenario
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Known, Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual import VirtualPlan

MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
"""Of Gu and Bai 2023, from whose code the paper's experiments seem to descend."""

ADAPTED: tuple[Known, ...] = ("auxiliary", "model", "recipe", "defenses")
"""What an attacker knows whose virtual clients add the noise that real ones add."""


def plan(
    scenario: Scenario,
    size: WhispersSize,
    *,
    quick: bool,
    methods: Sequence[Method] = METHODS,
    arms: tuple[ArmPlan, ...] = (),
    expected: tuple[int, int] | None = None,
) -> Plan:
    """Audit one federation, heard by a server that trains virtual clients of the same kind.

    Args:
        scenario: how labels are shared out among clients of either kind.
        size: how much is run.
        quick: whether the methods hurry.
        methods: that the server tries, on all rounds together.
        arms: with defenses, which the server then knows.
        expected: the smallest and the largest client that the server thinks of; None = those
            that there are.

    """
    return Plan(
        title=f"Whispers of Data on {scenario.name}",
        seeds=size.seeds,
        data=DataPlan(
            source=size.source,
            split=scenario.split,
            clients=size.clients,
            examples=size.examples,
            auxiliary_per_class=size.auxiliary,
            test=size.test,
        ),
        training=TrainingPlan(
            model=size.model,
            rounds=size.rounds,
            rate=size.rate,
            batch=size.batch,
            momentum=MOMENTUM,
            weight_decay=WEIGHT_DECAY,
        ),
        arms=arms,
        threats=(
            ThreatPlan(
                attacks=attacks_of(methods, quick=quick),
                knows=ADAPTED if arms else ("auxiliary", "model", "recipe"),
                by_round=False,
                virtual=VirtualPlan(
                    clients=size.virtual,
                    splits=(scenario.split,),
                    examples=expected or size.examples,
                ),
            ),
        ),
    )


def place_of(run: Plan, number: int, arm: str) -> ReadingPlace:
    """Where the findings of an attack on all rounds stand; `number`: of the attack."""
    threat = run.threats[0]
    rounds = tuple(range(run.training.rounds))
    return ReadingPlace(threat.named(threat.attacks[number]), rounds, arm)
