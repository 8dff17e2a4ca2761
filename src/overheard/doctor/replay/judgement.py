"""Judges the runs of a proof by its rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, final

from overheard.doctor.criticism import (
    Criticism,
    Diagnosis,
    DoctorRule,
    Unseen,
    sort_by_severity,
)
from overheard.doctor.replay.comparison import (
    Difference,
    FoundRows,
    StepDifference,
    flow_difference,
    reply_differences,
    step_differences,
)
from overheard.doctor.replay.noise import largest_stds, repeats, too_small
from overheard.doctor.replay.rules import (
    BATCH_SIZES,
    CONTROL_FLOW,
    CROSS_RECORDS,
    METRICS,
    NOISE_REPEATS,
    NOISE_SCALE,
    NON_FINITE,
    PROOF_RULES,
    RECORD_COUNT,
    SENSITIVITY,
    WITHOUT_NOISE,
)
from overheard.doctor.replay.runs import Run
from overheard.doctor.replay.stated_claim import StatedClaim
from overheard.doctor.replay.trace import NoiseEvent

TOLERANCE = 1e-4
"""Relative error of sums of float32 values that is no fault."""

CLIPS = 10
"""The gradient of the probing record has at least so many clips."""

Relation = Literal["zeroed", "replaced"]
"""What neighbouring data are: the record's gradient is zero (one clip apart), or the record is
another (two clips apart)."""

_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


@final
@dataclass(frozen=True, slots=True)
class ProofEvidence:
    """The runs of a proof.

    Args:
        base: the run without the record.
        again: its repetition.
        replays: by what was changed in words, replays with the record; the first two differ
            only by the size of its gradient, by a factor of ten.
        forced: replays in which numbers that depend on the record are larger or smaller.
        absent: the replay in which the record is in no batch; None = batches are not drawn by a
            number for each record.
        fresh: by its name in words, runs of other clients or of other entropy.
        found: where the record is in the passes of the model.
        relation: what neighbouring data are in these runs.
        claim: clip and noise multiplier.

    """

    base: Run
    again: Run
    replays: Mapping[str, Run]
    forced: Mapping[str, Run]
    absent: Run | None
    fresh: Mapping[str, Run]
    found: FoundRows
    relation: Relation
    claim: StatedClaim


@final
@dataclass(slots=True)
class _Findings:
    """Criticisms as they are found, one for each rule and fault."""

    criticisms: dict[tuple[str, str], Criticism] = field(default_factory=dict)
    unseen: dict[str, Unseen] = field(default_factory=dict)

    def add(self, rule: DoctorRule, fault: str, what: str, where: str, evidence: str) -> None:
        """Add a criticism, unless the same fault was found before."""
        self.criticisms.setdefault((rule.id, fault), Criticism(rule, what, where, evidence))

    def miss(self, rule: DoctorRule, why: str) -> None:
        """Note what a rule could not see."""
        self.unseen.setdefault(rule.id, Unseen(rule, why))

    def diagnosis(self) -> Diagnosis:
        """Return all findings; a rule without any has passed."""
        found = sort_by_severity(self.criticisms.values())
        named = {one.rule.id for one in found}
        unseen = tuple(one for one in self.unseen.values() if one.rule.id not in named)
        named |= set(self.unseen)
        passed = tuple(one for one in PROOF_RULES if one.id not in named)
        return Diagnosis(found, passed, unseen)


def judge(evidence: ProofEvidence) -> Diagnosis:
    """Return what is wrong by the evidence, what has passed, and what could not be seen."""
    findings = _Findings()
    if not _sees_anything(evidence, findings):
        return findings.diagnosis()
    unstable = {
        (one.name, one.round) for one in reply_differences(evidence.base, evidence.again)
    }
    if unstable:
        names = ", ".join(sorted({name for name, _ in unstable})[:5])
        findings.miss(
            METRICS,
            f"{names} differ between two equal runs, as times do, and were not tested",
        )
    for what, run in evidence.replays.items():
        _judge_flow(evidence, what, run, findings)
        _judge_reply(evidence, what, run, unstable, findings)
        _judge_sums(evidence, what, run, findings)
    # What depends on the record in any case says nothing of branches and of batch sizes.
    known = unstable | {
        (one.name, one.round)
        for run in evidence.replays.values()
        for one in reply_differences(evidence.base, run)
    }
    for what, run in evidence.forced.items():
        _judge_forced(evidence, what, run, known, findings)
    _judge_absent(evidence, known, findings)
    _judge_rows(evidence, findings)
    _judge_noise(evidence, findings)
    _judge_count(evidence, findings)
    return findings.diagnosis()


def _events(run: Run) -> list[NoiseEvent]:
    return [one for trace in run.traces[1:] for one in trace.events]


def _sees_anything(evidence: ProofEvidence, findings: _Findings) -> bool:
    """Note why nothing can be judged, if so."""
    base = evidence.base
    is_torch = any(trace.inputs or trace.draws or trace.events for trace in base.traces[1:])
    why = ""
    if base.failure:
        why = f"the client failed without the record, too ({base.failure}): mend it first"
    elif not base.records:
        why = (
            "no function of the client's code returned data in which a record could be "
            "replaced: name the function that loads its data"
        )
    elif not is_torch:
        why = "nothing was computed with torch: other frameworks are not seen"
    elif not _events(base) and not evidence.claim.noise_multiplier:
        why = (
            "no noise was added to gradients or weights, and none is stated: noise of the "
            "server, and noise that is not normal, is not seen here"
        )
    if why:
        for rule in PROOF_RULES:
            findings.miss(rule, why)
    elif not _events(base):
        findings.add(
            WITHOUT_NOISE,
            "none",
            f"A noise multiplier of {evidence.claim.noise_multiplier:g} is stated, and no "
            "noise was added to any gradient or weight.",
            "the whole client",
            f"{sum(len(one.inputs) for one in base.traces)} passes of the model, 0 additions",
        )
    return not why


def _judge_flow(evidence: ProofEvidence, what: str, run: Run, findings: _Findings) -> None:
    if not (found := flow_difference(evidence.base, run)):
        return
    if run.failure and run.plan.replacement.kind == "non-finite":
        findings.add(
            NON_FINITE, "fails", "The client fails on a record of huge values.", what, found
        )
        return
    findings.add(
        CONTROL_FLOW, "flow", f"The code does something else with {what}.", what, found
    )


def _judge_reply(
    evidence: ProofEvidence,
    what: str,
    run: Run,
    unstable: set[tuple[str, int]],
    findings: _Findings,
) -> None:
    differences = _stable_differences(evidence, run, unstable)
    # Once the code does something else, released sums are no longer those of the past.
    is_same_flow = not flow_difference(evidence.base, run)
    arrays = [one for one in differences if one.kind == "array"]
    buffers = [one for one in arrays if any(word in one.name for word in _BUFFERS)]
    plain = [one for one in arrays if one not in buffers]
    numbers = [one for one in differences if one.kind == "number"]
    shapes = [one for one in differences if one.kind == "shape"]
    if buffers:
        findings.add(
            CROSS_RECORDS,
            "buffers",
            f"Buffers of a batch norm are sent without noise: {_names(buffers)}.",
            _rounds(buffers),
            f"with {what}: {buffers[0].name} {buffers[0].detail}",
        )
    if plain and is_same_flow:
        findings.add(
            WITHOUT_NOISE,
            "arrays",
            f"{len({one.name for one in plain})} arrays of the reply depend on the record, "
            f"although all noised sums are repeated: {_names(plain)}.",
            _rounds(plain),
            f"with {what}: {plain[0].name} {plain[0].detail}",
        )
    if numbers:
        findings.add(
            METRICS,
            "numbers",
            f"The reply tells of the record in clear: {_names(numbers)}.",
            _rounds(numbers),
            f"with {what}: {numbers[0].name} is {numbers[0].detail}",
        )
    if shapes:
        findings.add(
            CONTROL_FLOW,
            "shapes",
            f"Names or shapes of the reply depend on the record: {_names(shapes)}.",
            _rounds(shapes),
            f"with {what}: {shapes[0].name}: {shapes[0].detail}",
        )


def _stable_differences(
    evidence: ProofEvidence, run: Run, unstable: set[tuple[str, int]]
) -> list[Difference]:
    found = reply_differences(evidence.base, run)
    return [one for one in found if (one.name, one.round) not in unstable]


def _names(differences: Sequence[Difference]) -> str:
    names = list(dict.fromkeys(one.name for one in differences))
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def _rounds(differences: Sequence[Difference]) -> str:
    return f"reply of round {min(one.round for one in differences)}"


def _judge_sums(evidence: ProofEvidence, what: str, run: Run, findings: _Findings) -> None:
    """Hold the distance of each noised sum against the stated sensitivity."""
    claim = evidence.claim
    if flow_difference(evidence.base, run) or run.plan.replacement.is_all:
        return
    stds = largest_stds(_events(evidence.base))
    for step in step_differences(evidence.base, run, stds):
        where = f"round {step.round}, step {step.step} ({step.place})"
        if not step.is_finite:
            findings.add(
                NON_FINITE,
                "sum",
                "One record with a non-finite gradient makes a noised sum non-finite.",
                where,
                f"with {what}",
            )
            continue
        if not step.same_noise:
            findings.add(
                NOISE_SCALE,
                "depends",
                "The noise itself depends on the record.",
                where,
                f"with {what}: the same draws are scaled otherwise",
            )
        shown = f"with {what}: distance {step.distance:.5g}, noise of {step.std:.5g}"
        if not _has_record(evidence, step):
            leaks = any(one.kind == "array" for one in reply_differences(evidence.base, run))
            if step.in_noise > TOLERANCE and not leaks:
                findings.add(
                    SENSITIVITY,
                    "stale",
                    "The record moves the sum of a step whose batch does not hold it.",
                    where,
                    shown,
                )
            continue
        clips = _stated_clips(evidence, step)
        moved = step.in_noise
        limit = (1 + TOLERANCE) * clips
        if claim.noise_multiplier and moved * claim.noise_multiplier > limit:
            times = moved * claim.noise_multiplier / clips
            is_clipped = claim.clip is not None and step.distance <= claim.clip * limit
            is_noise = is_clipped and times > 2.05
            findings.add(
                NOISE_SCALE if is_noise else SENSITIVITY,
                "ratio",
                f"One record moves the noised sum by {times:.4g} times what a noise multiplier "
                f"of {claim.noise_multiplier:g} allows.",
                where,
                f"{shown}; stated: {_stated(claim)}, {evidence.relation} record",
            )
        elif claim.clip and step.distance > claim.clip * limit:
            findings.add(
                SENSITIVITY,
                "clip",
                f"One record moves the noised sum by {step.distance / claim.clip:.4g} clips, "
                f"and {clips:g} are stated.",
                where,
                f"{shown}; stated: {_stated(claim)}, {evidence.relation} record",
            )


def _stated_clips(evidence: ProofEvidence, step: StepDifference) -> float:
    """Return by how many clips a record may move a sum.

    If weights change between the passes of a sum, it is an update of several steps, which is
    clipped as a whole: with another record it is another update, up to two clips away.
    """
    trace = evidence.base.traces[step.round]
    passes = [at for at, group in enumerate(trace.groups) if group == step.step - 1]
    updates = {trace.updates[at] for at in passes if trace.is_training[at]}
    return 1.0 if evidence.relation == "zeroed" and len(updates) <= 1 else 2.0


def _stated(claim: StatedClaim) -> str:
    clip = "no clip" if claim.clip is None else f"clip {claim.clip:g}"
    noise = claim.noise_multiplier
    multiplier = "no noise multiplier" if noise is None else f"noise multiplier {noise:g}"
    return f"{clip}, {multiplier} ({claim.source or 'nowhere'})"


def _has_record(evidence: ProofEvidence, step: StepDifference) -> bool:
    """Return whether the record is in the batch of a step, as far as that is known."""
    if not evidence.found.is_whole or not evidence.found.passes or evidence.found.others:
        return True
    rows = evidence.found.rows[step.round - 1]
    groups = evidence.base.traces[step.round].groups
    return any(groups[at] == step.step - 1 for at in rows)


def _judge_forced(
    evidence: ProofEvidence,
    what: str,
    run: Run,
    unstable: set[tuple[str, int]],
    findings: _Findings,
) -> None:
    """Judge a run in which numbers of the record are others; errors of code do not count."""
    numbers = {one.place for trace in run.traces for one in trace.numbers}
    found = "" if run.failure else flow_difference(evidence.base, run)
    changed = [
        one for one in _stable_differences(evidence, run, unstable) if one.kind != "number"
    ]
    if found or (changed and not run.failure):
        findings.add(
            CONTROL_FLOW,
            "flow",
            f"The code does something else if {what}.",
            ", ".join(sorted(numbers)[:3]),
            found or f"{changed[0].name} {changed[0].detail}",
        )


def _judge_absent(
    evidence: ProofEvidence, unstable: set[tuple[str, int]], findings: _Findings
) -> None:
    run = evidence.absent
    if run is None:
        findings.miss(
            BATCH_SIZES,
            "batches are not drawn by a random number for each record (Poisson), so their "
            "sizes are taken as public",
        )
        return
    flow = flow_difference(evidence.base, run, is_same_batch=False)
    differences = _stable_differences(evidence, run, unstable)
    noise = [one for one in step_differences(evidence.base, run) if not one.same_noise]
    if flow or differences or noise:
        first = differences[0] if differences else None
        findings.add(
            BATCH_SIZES,
            "absent",
            "If a draw leaves the record out of its batch, "
            + (
                f"the code does something else: {flow}."
                if flow
                else f"the reply differs beyond its noised sums: {_names(differences)}."
                if differences
                else "the noise is scaled otherwise."
            ),
            _rounds(differences) if differences else "steps with the record",
            flow or (f"{first.name}: {first.detail}" if first else noise[0].place),
        )


def _judge_rows(evidence: ProofEvidence, findings: _Findings) -> None:
    if evidence.found.others:
        findings.add(
            CROSS_RECORDS,
            "inputs",
            "Another value of one record changes what the model is given for other records.",
            evidence.found.others,
            "inputs of the same batch, with and without the record",
        )


def _judge_noise(evidence: ProofEvidence, findings: _Findings) -> None:
    events = _events(evidence.base)
    if not events:
        return
    for place, measured, stated in too_small(events):
        findings.add(
            NOISE_SCALE,
            "measured",
            f"Noise has a standard deviation of {measured:.4g}; its code says {stated:.4g}.",
            place,
            f"{len(events)} additions of noise in {len(evidence.base.replies)} rounds",
        )
    for pair in repeats({"client 0": evidence.base, **evidence.fresh}):
        findings.add(
            NOISE_REPEATS,
            "repeats",
            "Two sums have the same noise, so that their difference has none.",
            pair,
            f"correlation above .9 of {sum(one.noise.numel() for one in events)} values",
        )
    failed = [name for name, run in evidence.fresh.items() if run.failure]
    if failed:
        findings.miss(NOISE_REPEATS, f"{failed[0]} failed: {evidence.fresh[failed[0]].failure}")
    if evidence.claim.noise_multiplier is None:
        findings.miss(
            NOISE_SCALE,
            "no noise multiplier is stated in options, settings or code: state it",
        )
    if why := _too_few_clips(evidence):
        findings.miss(SENSITIVITY, why)


def _too_few_clips(evidence: ProofEvidence) -> str:
    """Return where the probing record may have a gradient below ten clips; "" = nowhere.

    If a tenth of the gradient moves each of its sums as far, it is clipped at a tenth already.
    """
    strong, weak = list(evidence.replays.values())[:2]
    base = evidence.base
    pairs = zip(step_differences(base, strong), step_differences(base, weak), strict=False)
    steps = [(one, two) for one, two in pairs if _has_record(evidence, one)]
    if not steps:
        return "the record is in no batch of these rounds: run more steps"
    short = [
        one
        for one, two in steps
        if not one.distance or abs(one.distance - two.distance) > 1e-3 * one.distance
    ]
    if not short:
        return ""
    return (
        f"at {len(short)} of the record's {len(steps)} steps its gradient is not known to have "
        f"{CLIPS} clips, the first of them step {short[0].step} of round {short[0].round}"
    )


def _judge_count(evidence: ProofEvidence, findings: _Findings) -> None:
    records = evidence.base.records
    names = [
        name
        for reply in evidence.base.replies[:1]
        for name, value in reply.items()
        if isinstance(value, float) and value == records and records > 2
    ]
    if names:
        findings.add(
            RECORD_COUNT,
            "count",
            f"The reply has the exact number of records: {', '.join(names)}. A promise for a "
            "record that is added or removed does not cover it.",
            "reply of round 1",
            f"{names[0]} = {records}",
        )
