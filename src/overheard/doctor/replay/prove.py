"""A proof by record and replay: runs a client with and without one record, and judges it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import final

from overheard.doctor.criticism import Diagnosis
from overheard.doctor.replay.clients import Code
from overheard.doctor.replay.comparison import FoundRows, find_rows
from overheard.doctor.replay.judgement import ProofEvidence, Relation, judge
from overheard.doctor.replay.records import RecordKind, Replacement
from overheard.doctor.replay.runs import ROUNDS, Run, RunPlan, run_client
from overheard.doctor.replay.stated_claim import NOTHING_STATED, StatedClaim, read_settings
from overheard.doctor.replay.trace import Intervention, Number

STRONG = 1e6
"""What gradients of the probing record are multiplied by."""

MOST_RUNS = 24
"""The most runs of a client that a proof takes."""

POSITIONS = (0.5, 0.0, 0.99, 0.25, 0.75)
"""Where a record is looked for that takes part in each message, as shares of all records."""


@final
@dataclass(frozen=True, slots=True)
class Proof:
    """What a proof found, and what it cost.

    Args:
        diagnosis: what it found.
        runs: number of runs of the client.
        core_seconds: seconds of a core that they took.

    """

    diagnosis: Diagnosis
    runs: int
    core_seconds: float


@final
@dataclass(frozen=True, slots=True)
class ProofRequest:
    """What is to be proven.

    Args:
        code: the code of the client.
        stated: clip and noise multiplier, where the caller knows them.

    """

    code: Code
    stated: StatedClaim


@final
@dataclass(slots=True)
class _Prover:
    """Runs a client, and counts the cost."""

    code: Code
    runs: list[Run] = field(default_factory=list)

    def run(self, plan: RunPlan, past: Run | None = None) -> Run:
        self.runs.append(run_client(self.code, plan, past))
        return self.runs[-1]


def prove_here(code: Code, stated: StatedClaim = NOTHING_STATED) -> Proof:
    """Prove a client in this process; its code runs here.

    Args:
        code: the code of the client.
        stated: clip and noise multiplier, where the caller knows them; what is missing is read
            from the configuration, or else from the code where it adds noise.

    """
    prover = _Prover(code)
    plan, found = _place_record(prover)
    unmasked = prover.runs[-2]
    claim = stated.filled(read_settings(code.config, "the configuration")).filled(
        unmasked.claim
    )
    relation: Relation = "replaced"
    base = unmasked
    if found.passes and not found.others and not unmasked.failure:
        plan = _without_released(plan.masked(found.rows, 0.0))
        masked = prover.run(plan, unmasked)
        if all(trace.is_scaled for trace in masked.traces):
            base, relation = masked, "zeroed"
    if base.failure or not base.records:
        evidence = ProofEvidence(base, base, {}, {}, None, {}, found, relation, claim)
        return Proof(judge(evidence), len(prover.runs), sum(one.seconds for one in prover.runs))
    replays = dict(_replays(prover, base, found, relation))
    fresh = {
        "client 1": prover.run(replace(base.plan, client=1, entropy=2, changes=())),
        "client 0, started again": prover.run(replace(base.plan, entropy=3, changes=())),
    }
    evidence = ProofEvidence(
        base,
        prover.run(_with_released(base.plan), base),
        replays,
        dict(_forced(prover, base, replays, found)),
        _absent(prover, base),
        fresh,
        found,
        relation,
        claim,
    )
    seconds = sum(one.seconds for one in prover.runs)
    return Proof(judge(evidence), len(prover.runs), seconds)


def _place_record(prover: _Prover) -> tuple[RunPlan, FoundRows]:
    """Find a record that takes part in each message; the last two runs are those with it."""
    best: tuple[int, float] = (-1, POSITIONS[0])
    for position in POSITIONS:
        found = _try_position(prover, position)
        if found.passes > 0 or prover.runs[-2].failure or not prover.runs[-2].records:
            return prover.runs[-2].plan, found
        taken = sum(len(one) for one in found.rows)
        best = max(best, (taken, -position))
    found = _try_position(prover, -best[1] if best[0] > 0 else POSITIONS[0])
    return prover.runs[-2].plan, found


def _try_position(prover: _Prover, position: float) -> FoundRows:
    without = prover.run(RunPlan(Replacement(position, "neutral")))
    record = prover.run(RunPlan(Replacement(position, "far")), without)
    return find_rows(without, record)


def _without_released(plan: RunPlan) -> RunPlan:
    """Return a plan that repeats random draws alone."""
    changes = tuple(replace(one, replays_released=False) for one in plan.changes)
    return replace(plan, changes=changes)


def _with_released(plan: RunPlan) -> RunPlan:
    changes = tuple(replace(one, replays_released=True) for one in plan.changes)
    return replace(plan, changes=changes)


def _replays(
    prover: _Prover, base: Run, found: FoundRows, relation: Relation
) -> Iterator[tuple[str, Run]]:
    """Yield the replays with the record, by what it is in words."""
    probes: list[tuple[str, RecordKind, float]]
    if relation == "zeroed":
        probes = [
            ("a record of other values whose gradient is large", "far", STRONG),
            ("a record whose gradient is a tenth of that", "far", STRONG / 10),
            ("a record whose gradient is large and opposite", "far", -STRONG),
        ]
    else:
        probes = []
    probes += [
        ("a record of huge values", "huge", 1.0),
        ("a record of other values and another label", "far", 1.0),
        ("a record whose loss is not finite", "non-finite", 1.0),
    ]
    for what, kind, factor in probes:
        plan = replace(base.plan, replacement=replace(base.plan.replacement, kind=kind))
        is_scaled = relation == "zeroed"
        plan = plan.masked(found.rows, factor) if is_scaled else replace(plan, changes=())
        yield what, prover.run(plan, base)
    # Nothing without noise may depend on any record, also of batches without the probing one.
    whole = replace(base.plan.replacement, kind="far", is_all=True)
    plan = replace(base.plan, replacement=whole, changes=())
    yield "other values of all records", prover.run(plan, base)


def _forced(
    prover: _Prover, base: Run, replays: Mapping[str, Run], found: FoundRows
) -> Iterator[tuple[str, Run]]:
    """Yield replays in which numbers that depend on the record are larger, or smaller."""
    others = [one for one in replays.values() if one.plan.replacement.kind != "non-finite"]
    changed = [_changed_numbers(base, others, message) for message in range(1, ROUNDS + 1)]
    if not any(changed):
        return
    record = others[0]
    for word, direction in (("large", 1), ("small", -1)):
        changes = tuple(
            replace(
                change,
                numbers={at: _forced_number(value, direction) for at, value in numbers.items()},
            )
            for change, numbers in zip(_changes(record), changed, strict=True)
        )
        plan = replace(record.plan, changes=changes)
        yield f"numbers that depend on the record are {word}", prover.run(plan, base)


def _changes(run: Run) -> tuple[Intervention, ...]:
    return run.plan.changes or (Intervention(),) * ROUNDS


def _changed_numbers(base: Run, others: list[Run], message: int) -> dict[int, float]:
    """Return the numbers that left torch and depend on the record, by their place."""
    if message >= len(base.traces):
        return {}
    numbers = base.traces[message].numbers
    return {
        at: one.value
        for at, one in enumerate(numbers)
        for other in others
        if message < len(other.traces) and len(other.traces[message].numbers) == len(numbers)
        if _depends(one, other.traces[message].numbers[at])
    }


def _depends(number: Number, other: Number) -> bool:
    return number.value != other.value or number.compared != other.compared


def _forced_number(value: float, direction: int) -> float:
    if value == int(value):  # a count, or a truth value
        return max(value + direction, 0.0)
    return value + (abs(value) + 1) * 1000 if direction > 0 else 0.0


def _absent(prover: _Prover, base: Run) -> Run | None:
    """Return the replay in which the record is in no batch, if batches are drawn so."""
    draws = [
        one
        for trace in base.traces[1:]
        for name, one in trace.draws
        if name.startswith(("rand", "uniform", "bernoulli")) and one.is_floating_point()
    ]
    if not any(one.numel() == base.records for one in draws) or base.failure:
        return None
    absent = (base.plan.replacement.index(base.records), base.records)
    changes = tuple(
        replace(one, absent=absent, rows={}, replays_released=True) for one in _changes(base)
    )
    return prover.run(replace(base.plan, changes=changes), base)
