"""The audits of Decaf's experiments: one federation, trained as the paper has it."""

from dataclasses import dataclass
from typing import Any, final

from overheard.core.attack import Attack
from overheard.data.splits.shares import Shares
from overheard.learning.model import Model
from overheard.papers.decaf.benchmark import DecafBenchmark
from overheard.papers.setting import setting as told_setting
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan

RATE = 1.0
"""Of Adadelta: PyTorch's own, as the paper names none."""


@final
@dataclass(frozen=True, slots=True)
class DecafSize:
    """How much of an experiment is run.

    Args:
        rounds: of the federation.
        seeds: of its runs.
        examples: of each user; None = the benchmark's.
        auxiliary: examples of each class that the attacker has; None = the benchmark's.
        test: examples to measure the accuracy on.

    """

    rounds: int
    seeds: tuple[int, ...]
    examples: int | None = None
    auxiliary: int | None = None
    test: int = 1000


def plan(
    benchmark: DecafBenchmark,
    size: DecafSize,
    # Any: an attack answers a question of its own.
    attacks: tuple[Attack[Any], ...],
    *,
    model: Model | None = None,
    arms: tuple[ArmPlan, ...] = (),
    auxiliary: int | None = None,
) -> Plan:
    """Audit one federation of the paper's users, heard by the server.

    Each user takes one step a round on all of its examples, and so do the attacker's bases;
    `differences.COMMON` says why.

    Args:
        benchmark: the data and the users.
        size: how much is run.
        attacks: that the server tries.
        model: in place of the benchmark's.
        arms: with defenses, beside the one without.
        auxiliary: examples of each class in place of the size's and the benchmark's.

    """
    users = benchmark.users
    examples = size.examples or benchmark.examples
    known = auxiliary or size.auxiliary or benchmark.auxiliary
    return Plan(
        title=f"Decaf on {benchmark.name}",
        seeds=size.seeds,
        data=DataPlan(
            source=benchmark.source,
            split=Shares(tuple(user.true for user in users)),
            clients=len(users),
            examples=examples,
            auxiliary_per_class=known,
            test=size.test,
        ),
        training=TrainingPlan(
            model=model or benchmark.model,
            rounds=size.rounds,
            rate=RATE,
            epochs=1,
            batch=max(examples, known * len(benchmark.columns)),
            optimizer="adadelta",
        ),
        arms=arms,
        threats=(ThreatPlan(attacks=attacks),),
    )


def setting(benchmark: DecafBenchmark, run: Plan, full: Plan) -> str:
    """What a figure was measured on, in words; of a reduced run also what was cut."""
    return told_setting(benchmark.name, run, full, people="users")
