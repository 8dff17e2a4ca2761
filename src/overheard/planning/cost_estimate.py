"""Estimates how much time, memory and disk an audit takes, from short measurements."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf
from time import process_time
from typing import Any, final

from overheard.auditing.inputs import AuditInputs
from overheard.auditing.program import AuditProgram
from overheard.auditing.simulate import describe_round
from overheard.core.attack import Attack
from overheard.federation.sampling import clients_per_round
from overheard.learning.devices.choice import machine_for, may_have_gpu
from overheard.learning.devices.machine import Machine
from overheard.learning.devices.training_work import TrainingWork
from overheard.learning.threads import available_cores, single_thread
from overheard.planning.measured_costs import (
    FEW_CLIENTS,
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
        is_trained_on_gpu: whether a GPU trains the clients of the federations.
        attacks_on_gpu: attacks whose virtual clients or shadow models a GPU trains.

    """

    seconds: float
    training_seconds: float
    attack_seconds: tuple[tuple[str, float], ...]
    memory_bytes: float
    disk_bytes: float
    unmeasured: tuple[str, ...]
    is_trained_on_gpu: bool = False
    attacks_on_gpu: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Return the estimate in lines of plain text."""
        low, high = self.seconds / WITHIN, self.seconds * WITHIN
        yield (
            f"Time: about {_describe_duration(self.seconds)}, between "
            f"{_describe_duration(low)} and {_describe_duration(high)}, on this machine as "
            "busy as now"
        )
        if self.training_seconds:
            place = ", on the GPU" if self.is_trained_on_gpu else ""
            duration = _describe_duration(self.training_seconds)
            yield f"  {duration:>8}  simulate the federations{place}"
        for name, seconds in sorted(self.attack_seconds, key=lambda pair: -pair[1]):
            place = ", training on the GPU" if name in self.attacks_on_gpu else ""
            yield f"  {_describe_duration(seconds):>8}  {name}{place}"
        if self.is_trained_on_gpu or self.attacks_on_gpu:
            yield "Everything else runs on the CPU, where it takes less time."
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
        machine: the costs of a machine with a GPU; None = it has none, or nothing for it to do.

    """

    planned: PlannedAudit
    audit_inputs: AuditInputs
    begun: float
    second_per_example: float
    attacks: Mapping[tuple[int, str], MeasuredAttack]
    unmeasured: tuple[str, ...]
    machine: Machine | None = None

    def estimate(self) -> CostEstimate:
        """Return the cost of the audit."""
        by_attack, on_gpu = dict[str, float](), set[str]()
        for number, view in enumerate(self.planned.views):
            for name, seconds, is_on_gpu in self._view_seconds(number, view):
                by_attack[name] = by_attack.get(name, 0.0) + seconds
                on_gpu |= {name} if is_on_gpu else set()
        trained = _trained_examples(self.planned.program, self.audit_inputs)
        training = trained * self.second_per_example / _speedup(self.audit_inputs)
        of_round = self._on_gpu(_described_rounds(self.planned, self.audit_inputs))
        if of_round:
            training = self.planned.program.rounds_to_train * self._gpu_seconds(of_round)
        return CostEstimate(
            self.begun + training + sum(by_attack.values()) + REPORT_SECONDS,
            training,
            tuple(by_attack.items()),
            _peak_memory() + REPORT_BYTES,
            _disk_bytes(self.planned),
            self.unmeasured,
            bool(of_round),
            tuple(sorted(on_gpu)),
        )

    def _on_gpu(self, works: Iterable[TrainingWork]) -> list[TrainingWork]:
        """Return those pieces that a GPU trains."""
        machine, is_forced = self.machine, self.audit_inputs.resources.device == "cuda"
        if machine is None:
            return []
        return [one for one in works if is_forced or machine.gains_from_gpu(one)]

    def _gpu_seconds(self, works: Iterable[TrainingWork]) -> float:
        return fsum(self.machine.gpu.seconds(one) for one in works) if self.machine else 0.0

    def _view_seconds(
        self, number: int, view: PlannedView
    ) -> Iterator[tuple[str, float, bool]]:
        """Yield each attack in an arm: name, seconds, and whether a GPU trains for it."""
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
            on_gpu = self._on_gpu(_scaled_works(attack.attack, measured.cost, clients))
            trained = new * measured.cost.rounds * self._gpu_seconds(on_gpu)
            if on_gpu and measured.cost.simulation:
                simulating = trained
            elif self.machine and on_gpu and not trains_virtual_clients(attack.attack):
                # Its own trainings were measured on one core.
                on_core = fsum(self.machine.core.seconds(one, 1) for one in on_gpu)
                on_core *= new * measured.cost.rounds
                fitting = max(0.0, fitting - on_core) + trained
            runs = sum(attack.is_in(run) for run in self.planned.program.runs)
            seconds = runs * (fitting + targets + simulating) / measured.cost.rounds
            yield name, seconds, bool(on_gpu)


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
    return MeasuredAudit(
        planned,
        audit_inputs,
        begun,
        second_per_example,
        attacks,
        unmeasured,
        _machine(planned, audit_inputs, attacks),
    )


def _machine(
    planned: PlannedAudit,
    audit_inputs: AuditInputs,
    attacks: Mapping[tuple[int, str], MeasuredAttack],
) -> Machine | None:
    """Return the costs of this machine if a GPU may train something of the audit."""
    if audit_inputs.resources.device == "cpu" or not may_have_gpu():
        return None
    works = [
        work
        for (number, name), measured in attacks.items()
        for attack in planned.views[number].threat.attacks
        if planned.views[number].threat.attack_name(attack) == name
        for work in _scaled_works(
            attack, measured.cost, planned.views[number].threat.virtual.clients
        )
    ]
    return machine_for((*_described_rounds(planned, audit_inputs), *works))


def _scaled_works(
    # Any: an attack answers a question of its own.
    attack: Attack[Any],
    cost: AttackCost,
    clients: int,
) -> tuple[TrainingWork, ...]:
    """Return what a GPU may train for an attack in a round, with all its virtual clients."""
    if not trains_virtual_clients(attack):
        return cost.works
    # It was measured with few of them.
    scaled = (
        replace(one, clients=round(one.clients * clients / FEW_CLIENTS)) for one in cost.works
    )
    return tuple(dict.fromkeys(scaled))


def _described_rounds(
    planned: PlannedAudit, audit_inputs: AuditInputs
) -> tuple[TrainingWork, ...]:
    """Return the training of a round of the first arm, for a machine that may have a GPU."""
    plan = planned.program.plan
    if not planned.program.rounds_to_train or audit_inputs.resources.device == "cpu":
        return ()
    partition = audit_inputs.partition(plan.seeds[0])
    work = describe_round(plan, plan.arms[0], partition, audit_inputs.dataset)
    return () if work is None else (work,)


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
