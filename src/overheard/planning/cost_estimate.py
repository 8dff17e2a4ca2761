"""Estimates how much time, memory and disk an audit takes, from short measurements."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from time import process_time
from typing import Any, final

from overheard.auditing.inputs import AuditInputs
from overheard.auditing.program import AuditProgram
from overheard.core.attack import Attack
from overheard.federation.sampling import clients_per_round
from overheard.learning.threads import available_cores, single_thread
from overheard.planning.measured_costs import (
    AttackCost,
    TimedCache,
    measure_attack,
    measure_training,
    trains_virtual_clients,
)
from overheard.planning.outlook import PlannedAudit, PlannedView

LONGEST_MEASUREMENT = 60.0
"""Seconds after which no measurement begins, but of attacks that train virtual clients."""

REPORT_SECONDS = 5.0
"""Verdicts and the report of a small audit, measured on one core."""

REPORT_BYTES = 150e6
"""Memory that verdicts and charts take beside the rest."""

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
            f"Time: about {_describe_duration(self.seconds)}, between "
            f"{_describe_duration(low)} and {_describe_duration(high)}, on this machine as "
            "busy as now"
        )
        if self.training_seconds:
            yield f"  {_describe_duration(self.training_seconds):>8}  simulate the federations"
        for name, seconds in sorted(self.attack_seconds, key=lambda pair: -pair[1]):
            yield f"  {_describe_duration(seconds):>8}  {name}"
        for name in self.unmeasured:
            yield f"  not measured: {name}"
        yield f"Memory: about {self.memory_bytes / GIGABYTE:.1f} GB"
        if self.disk_bytes:
            yield f"Disk: about {self.disk_bytes / GIGABYTE:.2g} GB of transcripts"


def _describe_duration(seconds: float) -> str:
    """Return a duration in words, with about two digits."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@final
@dataclass(frozen=True, slots=True)
class MeasuredAttack:
    """A measured attack of a threat in one arm.

    Args:
        cost: its measured seconds.
        targets: the number of targets on which it can run.

    """

    cost: AttackCost
    targets: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeasuredAudit:
    """An audit whose parts were measured; its cost follows.

    Args:
        planned: the audit.
        audit_inputs: its data.
        begun: seconds of this process before the measurement, such as imports.
        second_per_example: seconds to train on an example.
        attacks: the measured attacks, by number of the view and name.
        unmeasured: names of attacks that could not be measured.

    """

    planned: PlannedAudit
    audit_inputs: AuditInputs
    begun: float
    second_per_example: float
    attacks: Mapping[tuple[int, str], MeasuredAttack]
    unmeasured: tuple[str, ...]

    def estimate(self) -> CostEstimate:
        """Return the cost of the audit."""
        by_attack = dict[str, float]()
        for number, view in enumerate(self.planned.views):
            for name, seconds in self._view_seconds(number, view):
                by_attack[name] = by_attack.get(name, 0.0) + seconds
        trained = _trained_examples(self.planned.program, self.audit_inputs)
        training = trained * self.second_per_example / _speedup(self.audit_inputs)
        return CostEstimate(
            self.begun + training + sum(by_attack.values()) + REPORT_SECONDS,
            training,
            tuple(by_attack.items()),
            _peak_memory() + REPORT_BYTES,
            _disk_bytes(self.planned),
            self.unmeasured,
        )

    def _view_seconds(self, number: int, view: PlannedView) -> Iterator[tuple[str, float]]:
        """Yield the seconds of each attack in an arm, by name."""
        rounds, clients = len(view.seen.spec.rounds), view.threat.virtual.clients
        for attack in view.attacks:
            name = attack.cell.attack
            if (measured := self.attacks.get((number, name))) is None:
                continue
            used = int(min(rounds, _most_rounds(attack.attack)))
            single = len(attack.single_rounds)
            new = max(used, single)
            cost = measured.cost.at(clients)
            fitting = new * cost.first_target + (used + single - new) * cost.again
            targets = (used + single) * max(0, measured.targets - 1) * cost.next_target
            simulating = new * clients * measured.cost.simulation / _speedup(self.audit_inputs)
            runs = sum(attack.is_in(run) for run in self.planned.program.runs)
            yield name, runs * (fitting + targets + simulating) / measured.cost.rounds


def measure_audit(planned: PlannedAudit, audit_inputs: AuditInputs) -> MeasuredAudit:
    """Measure the parts of an audit: a few batches are trained, and attacks run on one target.

    After `LONGEST_MEASUREMENT` only attacks that train virtual clients are measured: their
    number decides how long most audits take.

    Args:
        planned: the audit.
        audit_inputs: its data.

    """
    begun, views = process_time(), planned.views
    with single_thread():
        second_per_example = measure_training(audit_inputs)
        costs, unmeasured = _measure_attacks(views, begun + LONGEST_MEASUREMENT)
    attacks = {
        (number, name): MeasuredAttack(costs[name], len(view.able_targets(attack)))
        for number, view in enumerate(views)
        for attack in view.threat.attacks
        if (name := view.threat.attack_name(attack)) in costs
    }
    return MeasuredAudit(planned, audit_inputs, begun, second_per_example, attacks, unmeasured)


def _measure_attacks(
    views: Sequence[PlannedView], until: float
) -> tuple[dict[str, AttackCost], tuple[str, ...]]:
    """Measure each attack once, by its name.

    Attacks that train virtual clients come first, and are all measured. No other measurement
    begins after `until`.
    """
    costs, failed, cache = dict[str, AttackCost](), dict[str, None](), TimedCache()
    # The first of the attacks that share virtual clients takes the time to train them.
    attacks = [
        (view, attack)
        for view in views
        for attack in sorted(view.threat.attacks, key=_most_rounds, reverse=True)
    ]
    for view, attack in sorted(attacks, key=lambda pair: not trains_virtual_clients(pair[1])):
        name = view.threat.attack_name(attack)
        targets = () if name in costs else view.able_targets(attack)
        if not targets:
            continue
        is_measured = trains_virtual_clients(attack) or process_time() < until
        cost = measure_attack(attack, view, targets, cache) if is_measured else None
        if cost is None:
            failed[name] = None
        else:
            costs[name] = cost
    return costs, tuple(name for name in failed if name not in costs)


# Any: an attack answers a question of its own.
def _most_rounds(attack: Attack[Any]) -> float:
    """Return the most rounds that an attack reads; infinite = no limit."""
    return float(getattr(attack, "most_rounds", None) or inf)


def _trained_examples(program: AuditProgram, audit_inputs: AuditInputs) -> float:
    """Return how many examples all simulated federations pass, with their repetitions."""
    if not (rounds := program.rounds_to_train):
        return 0.0
    plan, partition = program.plan, audit_inputs.partition(program.plan.seeds[0])
    mean = sum(map(len, partition.rows[0])) / len(partition.rows[0])
    cohort = clients_per_round(plan.data.clients, plan.training.participation)
    return rounds * cohort * mean * plan.training.recipe.epochs


def _speedup(audit_inputs: AuditInputs) -> float:
    """Return how much faster all worker processes are than one; about 0.8 for each."""
    workers = audit_inputs.resources.workers or available_cores()
    return max(1.0, 0.8 * workers)


def _disk_bytes(planned: PlannedAudit) -> float:
    plan, view = planned.program.plan, planned.views[0].view
    weights = next(iter(view.broadcasts().values()), {})
    model = sum(one.numel() * one.element_size() for one in weights.values())
    cohort = clients_per_round(plan.data.clients, plan.training.participation)
    return float(planned.program.rounds_to_train * (1 + cohort) * model)


def _peak_memory() -> float:
    """Return the most memory that this process has taken, in bytes; 0 = unknown."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) * (1 if sys.platform == "darwin" else 1024)
