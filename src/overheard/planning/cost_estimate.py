"""Estimates how much time, memory and disk an audit takes, from short measurements."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any, final

from overheard.auditing.inputs import AuditInputs
from overheard.auditing.work_items import applies_to_run, run_kinds, single_rounds
from overheard.core.attack import Attack
from overheard.federation.sampling import participants_per_round
from overheard.learning.threads import available_cores, one_thread
from overheard.planning.measured_costs import (
    MEASURED_VIRTUAL_CLIENTS,
    AttackCost,
    measure_attack,
    measure_training,
)
from overheard.planning.outlook import PlannedView
from overheard.planning.recorded_facts import RecordedFacts
from overheard.plans.plan import Plan
from overheard.plans.registries import question_of_attack

BUDGET = 60.0
"""Most seconds to begin another measurement."""

REPORT_SECONDS = 5.0
"""Verdicts and the report of a small audit, measured on one core."""

REPORT_BYTES = 150e6
"""Memory that verdicts and charts take beside the rest."""

PROBE_FACTOR = 1.5
"""Time to train virtual clients and to read their updates, by the time to train them."""

WITHIN = 3.0
"""Factor within which the time was found in tests against real audits."""

GIGABYTE = 1e9


@final
@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The estimated cost of an audit.

    Args:
        seconds: total time.
        training_seconds: part of it that simulates the federations.
        attack_seconds: by attack, the seconds of all its cells.
        memory_bytes: memory of the main process.
        disk_bytes: size of the transcripts.
        unmeasured: attacks that could not be measured, and whose time is not included.

    """

    seconds: float
    training_seconds: float
    attack_seconds: tuple[tuple[str, float], ...]
    memory_bytes: float
    disk_bytes: float
    unmeasured: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Return the estimate in lines of plain text."""
        low, high = self.seconds / WITHIN, self.seconds * WITHIN
        yield (
            f"Time: about {_duration(self.seconds)}, between {_duration(low)} and "
            f"{_duration(high)}, on this machine as busy as now"
        )
        if self.training_seconds:
            yield f"  {_duration(self.training_seconds):>8}  simulate the federations"
        for name, seconds in sorted(self.attack_seconds, key=lambda pair: -pair[1]):
            yield f"  {_duration(seconds):>8}  {name}"
        for name in self.unmeasured:
            yield f"  not measured: {name}"
        yield f"Memory: about {self.memory_bytes / GIGABYTE:.1f} GB"
        if self.disk_bytes:
            yield f"Disk: about {self.disk_bytes / GIGABYTE:.2g} GB of transcripts"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def estimate_cost(
    plan: Plan,
    audit_inputs: AuditInputs,
    views: Sequence[PlannedView],
    facts: RecordedFacts | None,
) -> CostEstimate:
    """Estimate the cost of an audit; a few batches are trained, and attacks run on one target.

    Args:
        plan: the plan.
        audit_inputs: its data.
        views: what each threat will see, from `planned_views`.
        facts: the recording to audit; None = a simulation.

    """
    begun = process_time()
    with one_thread():
        second_per_example = measure_training(plan, audit_inputs)
        costs, unmeasured = _measure_attacks(views, begun + BUDGET)
    by_attack = dict[str, float]()
    for view in views:
        for attack in view.threat.attacks:
            name = view.threat.attack_name(attack)
            if (cost := costs.get(name)) is not None:
                seconds = _attack_seconds(plan, view, attack, cost, second_per_example, facts)
                by_attack[name] = by_attack.get(name, 0.0) + seconds
    trained = _trained_examples(plan, audit_inputs) if facts is None else 0.0
    training = trained * second_per_example / _speedup(audit_inputs)
    total = begun + training + sum(by_attack.values()) + REPORT_SECONDS
    return CostEstimate(
        total,
        training,
        tuple(by_attack.items()),
        _peak_memory() + REPORT_BYTES,
        0.0 if facts is not None else _disk_bytes(plan, views),
        unmeasured,
    )


def _measure_attacks(
    views: Sequence[PlannedView], until: float
) -> tuple[dict[str, AttackCost], tuple[str, ...]]:
    """Measure each attack once, by its name; no measurement begins after `until`."""
    costs, failed = dict[str, AttackCost](), dict[str, None]()
    for view in views:
        for attack in view.threat.attacks:
            name = view.threat.attack_name(attack)
            targets = () if name in costs else view.able_targets(attack)
            if not targets:
                continue
            cost = measure_attack(attack, view, targets) if process_time() < until else None
            if cost is None:
                failed[name] = None
            else:
                costs[name] = cost
    return costs, tuple(name for name in failed if name not in costs)


def _attack_seconds(
    plan: Plan,
    view: PlannedView,
    # Any: an attack answers a question of its own.
    attack: Attack[Any],
    cost: AttackCost,
    second_per_example: float,
    facts: RecordedFacts | None,
) -> float:
    """Return the seconds of all cells of an attack in one arm."""
    rounds = facts.rounds if facts is not None else plan.rounds_of(view.arm)
    question = question_of_attack(attack)
    used = min(rounds, getattr(attack, "most_rounds", None) or rounds)
    single = len(single_rounds(view.threat, question, range(rounds)))
    targets = len(view.able_targets(attack))
    cell = cost.first_target + max(0, targets - 1) * cost.next_target
    seconds = (used + single) / cost.rounds * cell
    if attack.training_source() == "virtual clients":
        more = max(0, view.threat.virtual.clients - MEASURED_VIRTUAL_CLIENTS)
        examples = more * used * _virtual_examples(plan, view)
        seconds += PROBE_FACTOR * examples * second_per_example
    if facts is not None:
        return seconds
    kinds = [kind for kind in run_kinds(plan) if applies_to_run(question, kind.is_control)]
    return seconds * len(plan.seeds) * len(kinds)


def _virtual_examples(plan: Plan, view: PlannedView) -> float:
    """Return the examples that a virtual client passes in a round, on average."""
    if view.threat.virtual.examples is not None:
        size = sum(view.threat.virtual.examples) / 2
    else:
        sent = [
            update.examples
            for target in view.targets[:10]
            for update in view.view.updates(target).values()
            if update.examples is not None
        ]
        size = sum(sent) / len(sent) if sent else sum(plan.data.sizes) / 2 or 100
    return size * plan.training.recipe.epochs


def _trained_examples(plan: Plan, audit_inputs: AuditInputs) -> float:
    """Return how many examples all simulated federations pass, with their repetitions."""
    partition = audit_inputs.partition(plan.seeds[0])
    mean = sum(map(len, partition.rows[0])) / len(partition.rows[0])
    cohort = participants_per_round(plan.data.clients, plan.training.participation)
    rounds = sum(map(plan.rounds_of, plan.arms))
    runs = len(plan.seeds) * len(run_kinds(plan))
    return runs * rounds * cohort * mean * plan.training.recipe.epochs


def _speedup(audit_inputs: AuditInputs) -> float:
    """Return how much faster all worker processes are than one; about 0.8 for each."""
    workers = audit_inputs.resources.workers or available_cores()
    return max(1.0, 0.8 * workers)


def _disk_bytes(plan: Plan, views: Sequence[PlannedView]) -> float:
    weights = next(iter(views[0].view.broadcasts().values()), {})
    model = sum(one.numel() * one.element_size() for one in weights.values())
    cohort = participants_per_round(plan.data.clients, plan.training.participation)
    runs = len(plan.seeds) * len(run_kinds(plan))
    return float(runs * sum(map(plan.rounds_of, plan.arms)) * (1 + cohort) * model)


def _peak_memory() -> float:
    """Return the most memory that this process has taken, in bytes; 0 = unknown."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) * (1 if sys.platform == "darwin" else 1024)
