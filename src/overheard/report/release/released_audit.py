"""An audit as far as its released findings tell it, to render its page."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, nan

from overheard.archive.run_time import RunTime
from overheard.core.parties import Party
from overheard.findings.audit import Audit
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import (
    IntervalEstimate,
    RefusalRow,
    RunRow,
    SummaryRow,
    VerdictRow,
)
from overheard.findings.finding import ArmDefense, ArmRun, Cell, ClaimRow, Finding, Refusal
from overheard.findings.metadata import MetadataItem
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult
from overheard.findings.threat_verdict import ThreatVerdict
from overheard.findings.traffic import Traffic
from overheard.statistics.estimate import Estimate


def released_audit(found: FindingsDocument) -> Audit:
    """Return an audit with the results of findings.

    It has no claims: its findings only carry which attacks were made, and its scores and
    verdicts are those of the document.
    """
    results = tuple(_threat_result(found, one) for one in found.verdicts)
    arms = tuple(map(_run, found.arms))
    findings = [
        finding
        for result in results
        for attack_result in result.attack_results
        for finding in attack_result.findings
    ]
    recording = found.recording
    is_proved = recording is None or recording.sentences == ()
    return Audit(
        title=found.title,
        subject=found.subject,
        class_names=found.class_names,
        arms=arms,
        findings=tuple(findings),
        refusals=tuple(map(_refusal, found.refusals)),
        plan=found.plan,
        versions=found.versions,
        release=found.release,
        made_on=found.made_on,
        is_recorded=found.is_recorded,
        is_auxiliary_separate=found.is_auxiliary_separate,
        recording=None
        if recording is None or is_proved
        else AuditedRecording(None, failure=" ".join(recording.sentences).removesuffix(".")),
        arm_results=tuple(
            ArmResult(
                name,
                tuple(run for run in arms if run.arm == name and not run.is_control),
                tuple(one for one in results if one.arm == name),
            )
            for name in dict.fromkeys(run.arm for run in arms)
        ),
    )


def _run(row: RunRow) -> ArmRun:
    sent, seconds = row.bytes, row.seconds
    return ArmRun(
        row.arm,
        row.seed,
        tuple(
            ArmDefense(one.settings, one.enforced_at, one.switched_off_by, one.promise)
            for one in row.defenses
        ),
        {number: nan if one is None else one for number, one in row.accuracy.items()},
        row.missing,
        row.answers,
        row.is_control,
        None if sent is None else Traffic(sent.up, sent.down, sent.answers, sent.heard),
        None
        if seconds is None or seconds.wall is None
        else RunTime(seconds.wall, seconds.cores),
        has_truth=row.has_truth,
        control=row.control,
        control_number=row.control_number,
        in_clear=tuple(MetadataItem(one.kind, one.text) for one in row.in_clear),
        are_defenses_known=row.are_defenses_known,
        utility=row.utility,
        unrecorded=row.unrecorded,
        clients=row.clients,
    )


def _refusal(row: RefusalRow) -> Refusal:
    cell = Cell(
        row.arm,
        row.seed,
        _parties(row.observers),
        row.attack,
        row.settings,
        row.question,
        row.rounds,
        row.is_control,
        row.part,
        row.label,
    )
    return Refusal(cell, Party(row.target), row.missing, row.kind)


def _threat_result(found: FindingsDocument, verdict: VerdictRow) -> ThreatResult:
    observers = _parties(verdict.observers)
    place = (verdict.arm, observers, verdict.question, verdict.about)
    rows = [
        row
        for row in found.summary
        if (row.arm, _parties(row.observers), row.question, row.about) == place
    ]
    refused = [
        one
        for one in found.refusals
        if (one.arm, _parties(one.observers), one.question, one.key.about) == place
    ]
    by_attack = defaultdict[str, list[SummaryRow]](list)
    for row in rows:
        by_attack[row.attack].append(row)
    labels = _labels((*by_attack, *(one.attack for one in refused), verdict.attack))
    attack_results = [
        _attack_result(verdict, attack, labels[attack], own)
        for attack, own in by_attack.items()
    ]
    shared = {name: gain for name, gain in verdict.shared_gains.items() if gain is not None}
    judged = sorted(
        (one for one in attack_results if verdict.score in one.rows_by_score),
        key=lambda one: _strength(one, shared.get(one.attack, 0.0)),
    )
    return ThreatResult(
        verdict.arm,
        observers,
        verdict.question,
        verdict.about,
        tuple(judged),
        tuple(map(_refusal, refused)),
        tuple(map(_score_row, rows)),
        ThreatVerdict(
            verdict.verdict,
            verdict.attack,
            verdict.p_value,
            verdict.smallest_p_value,
            None if verdict.gain is None else _estimate(verdict.gain),
            verdict.margins,
            verdict.is_below_margin,
            verdict.why,
            shared,
            verdict.withheld,
        ),
        labels=labels,
        attacks_run=tuple(by_attack),
    )


def _attack_result(
    verdict: VerdictRow, attack: str, label: str, rows: Sequence[SummaryRow]
) -> AttackResult:
    longest = max((row.rounds for row in rows), key=lambda rounds: (len(rounds), rounds))
    observers = _parties(verdict.observers)
    cell = Cell(
        verdict.arm,
        0,
        observers,
        attack,
        "",
        verdict.question,
        longest,
        part=label,
        label=label,
    )
    # Two targets stand for several: sentences speak of each client then.
    targets = min(2, max(row.targets for row in rows))
    return AttackResult(
        attack,
        label,
        False,
        verdict.score,
        {row.score: _score_row(row) for row in rows if row.rounds == longest},
        {
            row.rounds[0]: _score_row(row)
            for row in sorted(rows, key=lambda row: row.rounds)
            if row.score == verdict.score and len(row.rounds) == 1
        },
        tuple(
            Finding(
                cell,
                (Party(f"client/{number + 1}"),),
                ClaimRow(),
                ClaimRow(),
                sent_rounds=longest,
            )
            for number in range(targets)
        ),
    )


def _labels(attacks: Iterable[str]) -> Mapping[str, str]:
    """Return the name to show for each attack: without settings if that tells them apart."""
    names = dict.fromkeys(attacks)
    heads = [name.partition("(")[0].partition(",")[0] for name in names]
    return {
        name: head if heads.count(head) == 1 else name
        for name, head in zip(names, heads, strict=True)
    }


def _strength(result: AttackResult, shared_gain: float) -> float:
    """Return a sort key: smaller is a stronger attack; undefined scores sort last."""
    row = result.headline_row
    if not isfinite(row.value.mean):
        return inf
    return shared_gain + (row.value.mean if row.better == "lower" else -row.value.mean)


def _score_row(row: SummaryRow) -> ScoreRow:
    return ScoreRow(
        row.arm,
        _parties(row.observers),
        row.attack,
        row.question,
        row.rounds,
        row.score,
        row.better,
        _estimate(row.value),
        _numbers(row.blinds),
        _numbers(row.references),
        row.blind,
        None if row.gain is None else _estimate(row.gain),
        row.targets,
        row.seeds,
    )


def _numbers(values: Mapping[str, float | None]) -> Mapping[str, float]:
    return {name: nan if value is None else value for name, value in values.items()}


def _estimate(row: IntervalEstimate) -> Estimate:
    mean = nan if row.mean is None else row.mean
    return Estimate(mean, row.low, row.high, row.basis, row.degrees)


def _parties(names: Iterable[str]) -> tuple[Party, ...]:
    return tuple(map(Party, names))
