"""The plans of Whispers' experiments: one federation, and virtual clients like its own."""

from collections.abc import Sequence

from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, KnownPart, Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard_studies.estimates import FindingFilter
from overheard_studies.whispers.benchmark import WhispersSize
from overheard_studies.whispers.methods import METHODS, Method, select_attacks
from overheard_studies.whispers.scenario import WhispersScenario

MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
"""Settings of Gu and Bai 2023, whose code seems to be the basis of the experiments."""

ADAPTIVE_KNOWLEDGE: tuple[KnownPart, ...] = ("auxiliary", "model", "recipe", "defenses")
"""Knowledge of an attacker whose virtual clients add the same noise as real ones."""


def build_plan(
    scenario: WhispersScenario,
    size: WhispersSize,
    *,
    quick: bool,
    methods: Sequence[Method] = METHODS,
    arms: tuple[ArmPlan, ...] = (),
    expected_sizes: tuple[int, int] | None = None,
) -> Plan:
    """Build the plan of an audit by a server that trains virtual clients like the real ones.

    Args:
        scenario: data set and split of real and virtual clients.
        size: size of the run.
        quick: whether to use the quick attacks.
        methods: methods that the server runs, on all rounds together.
        arms: arms with defenses, which the server then knows.
        expected_sizes: smallest and largest client size that the server expects; None = the
            true ones.

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
                attacks=select_attacks(methods, quick=quick),
                knows=ADAPTIVE_KNOWLEDGE if arms else ("auxiliary", "model", "recipe"),
                by_round=False,
                virtual=VirtualPlan(
                    clients=size.virtual,
                    splits=(scenario.split,),
                    examples=expected_sizes or size.examples,
                ),
            ),
        ),
    )


def build_finding_filter(run: Plan, number: int, arm: str) -> FindingFilter:
    """Select the findings of the attack with this index, on all rounds together."""
    threat = run.threats[0]
    rounds = tuple(range(run.training.rounds))
    return FindingFilter(threat.attack_name(threat.attacks[number]), rounds, arm)
