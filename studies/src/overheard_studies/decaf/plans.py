"""The plans of Decaf's experiments: one federation, trained as in the paper."""

from dataclasses import dataclass
from typing import Any, final

from overheard.core.attack import Attack
from overheard.data.splits.shares import Shares
from overheard.learning.model import Model
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard_studies.decaf.benchmark import DecafBenchmark
from overheard_studies.setting_description import describe_setting as describe

LEARNING_RATE = 1.0
"""Learning rate of Adadelta: PyTorch's default, as the paper gives none."""


@final
@dataclass(frozen=True, slots=True)
class DecafSize:
    """The size of an experiment.

    Args:
        rounds: rounds of the federation.
        seeds: seeds of its runs.
        examples: examples of each user; None = the benchmark's.
        auxiliary: auxiliary examples of each class; None = the benchmark's.
        test: examples on which the accuracy is measured.

    """

    rounds: int
    seeds: tuple[int, ...]
    examples: int | None = None
    auxiliary: int | None = None
    test: int = 1000


def build_plan(
    benchmark: DecafBenchmark,
    size: DecafSize,
    # Any: each attack has its own claim type.
    attacks: tuple[Attack[Any], ...],
    *,
    model: Model | None = None,
    arms: tuple[ArmPlan, ...] = (),
    auxiliary: int | None = None,
) -> Plan:
    """Build the plan of an audit of the paper's users, observed by the server.

    Each user takes one step per round on all of its examples, and so do the attacker's bases;
    `differences.COMMON` gives the reason.

    Args:
        benchmark: data set and users.
        size: size of the run.
        attacks: attacks that the server runs.
        model: model that replaces the benchmark's.
        arms: arms with defenses, in addition to the undefended one.
        auxiliary: auxiliary examples of each class that replace the size's and the
            benchmark's.

    """
    users = benchmark.users
    examples = size.examples or benchmark.examples
    known = auxiliary or size.auxiliary or benchmark.auxiliary
    return Plan(
        title=f"Decaf on {benchmark.name}",
        seeds=size.seeds,
        data=DataPlan(
            source=benchmark.source,
            split=Shares(tuple(user.true_percents for user in users)),
            clients=len(users),
            examples=examples,
            auxiliary_per_class=known,
            test=size.test,
        ),
        training=TrainingPlan(
            model=model or benchmark.model,
            rounds=size.rounds,
            rate=LEARNING_RATE,
            epochs=1,
            batch=max(examples, known * len(benchmark.label_columns)),
            optimizer="adadelta",
        ),
        arms=arms,
        threats=(ThreatPlan(attacks=attacks),),
    )


def describe_setting(benchmark: DecafBenchmark, run: Plan, full: Plan) -> str:
    """Describe what a value was measured on, and what a quick run reduces."""
    return describe(benchmark.name, run, full, participants="users")
