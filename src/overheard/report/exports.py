"""Exports of the findings as JSON and CSV."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import fields
from io import StringIO
from math import isfinite

from pydantic import ValidationError

from overheard.core.errors import FindingsError
from overheard.core.scorer import Score
from overheard.epsilon.epsilon_results import EpsilonResult, epsilon_results
from overheard.epsilon.threshold_bound import EpsilonBound, ThresholdRates
from overheard.findings.audit import Audit
from overheard.findings.document import FORMAT, VERSION, FindingsDocument, describe_flaw
from overheard.findings.document_rows import (
    ClaimScore,
    FindingRow,
    IntervalEstimate,
    RecordingRow,
    RefusalRow,
    RunRow,
    SummaryRow,
    VerdictRow,
)
from overheard.findings.finding import Cell, ClaimRow, Finding
from overheard.findings.frame import COLUMNS
from overheard.findings.names import make_printable
from overheard.findings.privacy.canary_scores import ClientEstimateRow
from overheard.findings.privacy.epsilon_rows import (
    BoundByGuesses,
    BoundByThreshold,
    ClientEpsilonsRow,
    EpsilonRow,
)
from overheard.findings.threat_results import ThreatResult
from overheard.report.doctor_section import criticism_rows
from overheard.report.threat_sentences import threat_sentences

MAX_NUMBERS = 1000
"""Longest claim in a CSV cell, in numbers; a claim about thousands of records is left out."""


def findings_document(audit: Audit) -> FindingsDocument:
    """Return all results of the audit as one document; NaN and infinity become None.

    Raises:
        FindingsError: if `read_findings` would refuse it.

    """
    try:
        return _make_document(audit)
    except ValidationError as error:
        raise FindingsError(
            f"the findings cannot be written ({error.title}, {describe_flaw(error)}): correct "
            "the attack or the question of your own that they are from, or report this as a "
            "fault of Overheard"
        ) from error


def _make_document(audit: Audit) -> FindingsDocument:
    results = [result for arm in audit.arm_results for result in arm.threat_results]
    return FindingsDocument.of(
        audit,
        {
            "format": FORMAT,
            "version": VERSION,
            "recording": _recording_row(audit),
            "arms": [RunRow.of(run, {"bytes": run.traffic}) for run in audit.arms],
            "summary": [
                SummaryRow.of(
                    row,
                    {
                        "about": result.target_kind,
                        "blinds": row.uninformed,
                        "blind": row.best_uninformed,
                    },
                )
                for result in results
                for row in result.rows
            ],
            "verdicts": [_verdict_row(result) for result in results],
            "epsilon": [
                epsilon_row(line, audit.bound_settings.digest)
                for line in epsilon_results(audit)
            ],
            "doctor": list(criticism_rows(audit)),
            "findings": [_finding_row(one) for one in audit.findings],
            "refusals": [RefusalRow.of(one, _fields_of(one.cell)) for one in audit.refusals],
        },
    )


def _recording_row(audit: Audit) -> RecordingRow | None:
    if audit.recording is None:
        return None
    proof, sentences = audit.recording.proof, audit.recording.sentences
    if proof is None:
        return RecordingRow(
            outcome=None, reason=None, sentences=sentences, mend="", accepted="", faults=()
        )
    return RecordingRow.of(proof, {"sentences": sentences})


def as_json(audit: Audit) -> str:
    """Return all results of the audit as one JSON document; NaN and infinity become null."""
    return findings_document(audit).to_json()


def _verdict_row(result: ThreatResult) -> VerdictRow:
    attacks = result.attack_results
    return VerdictRow.of(
        result.judgement,
        {
            "arm": result.arm,
            "observers": result.observers,
            "question": result.question,
            "about": result.target_kind,
            "score": attacks[0].headline if attacks else "",
            "sentence": threat_sentences(result)[0],
        },
    )


def _finding_row(finding: Finding) -> FindingRow:
    return FindingRow.of(
        finding,
        {
            **_fields_of(finding.cell),
            **_fields_of(finding.claimed),
            "claimed": finding.claimed.numbers,
            "true": finding.true_numbers,
            "blind": finding.guesses,
            "scores": tuple(
                ClaimScore.of(score, {"blinds": score.uninformed}) for score in finding.scores
            ),
        },
    )


def _fields_of(value: Cell | ClaimRow) -> Mapping[str, object]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def as_csv(audit: Audit) -> str:
    """Return one line per finding and score; NaN and infinity become empty cells.

    A finding without scores, such as that of a control, has one line. For a claim with
    candidates only the top candidate is listed. All its numbers, and those of claims with more
    than `MAX_NUMBERS`, are in the JSON document.
    """
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for finding in audit.findings:
        place, rest = _place_cells(finding), _finding_cells(finding)
        table.writerows(
            (*place, *([None] * 7 if score is None else _score_cells(score)), *rest)
            for score in finding.scores or (None,)
        )
    return text.getvalue()


def _place_cells(finding: Finding) -> tuple[str | int, ...]:
    """Return the cells before those of a score."""
    cell = finding.cell
    return (
        _escape_formula(cell.arm),
        cell.seed,
        _escape_formula("; ".join(cell.observers)),
        _escape_formula(cell.attack),
        _escape_formula(cell.settings),
        _escape_formula(cell.question),
        _escape_formula(" ".join(map(str, cell.rounds))),
        _escape_formula(finding.target),
    )


def _finding_cells(finding: Finding) -> tuple[str | int | float | None, ...]:
    """Return the cells after those of a score."""
    cell, claimed, timeline = finding.cell, finding.claimed, finding.claimed.timeline
    return (
        *_claim_cells(finding),
        None if claimed.low is None else _escape_formula(_join_numbers(claimed.low)),
        None if claimed.high is None else _escape_formula(_join_numbers(claimed.high)),
        str(cell.is_control).lower(),
        cell.control,
        cell.control_number,
        finding.true_since,
        None if timeline is None else timeline.since,
        None if timeline is None else timeline.alarm,
        _escape_formula(finding.top_candidate),
        _finite(claimed.none_of_them),
        None if finding.true_user is None else _escape_formula(finding.true_user),
    )


def _claim_cells(finding: Finding) -> tuple[str | None, str | None]:
    if finding.claimed.candidates or len(finding.claimed.numbers) > MAX_NUMBERS:
        return (None, None)
    return (
        _escape_formula(_join_numbers(finding.claimed.numbers)),
        _escape_formula(_join_numbers(finding.true_numbers)),
    )


def _score_cells(score: Score) -> tuple[str | float | None, ...]:
    return (
        _escape_formula(score.name),
        score.better,
        _finite(score.value),
        _finite(score.best_uninformed),
        _finite(score.gain),
        _join_named(score.uninformed),
        _join_named(score.references),
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else value


def _join_numbers(numbers: Sequence[float]) -> str:
    # Six digits, since every score repeats them; the JSON document has full precision.
    return " ".join(f"{number:.6g}" for number in numbers)


def _join_named(values: Mapping[str, float]) -> str:
    return _escape_formula("; ".join(f"{name}: {value!r}" for name, value in values.items()))


def _escape_formula(text: str) -> str:
    """Escape text that a spreadsheet would take for a formula, full-width signs included.

    Text that is a signed number is escaped too; real figures are written as numbers instead.
    """
    plain = make_printable(text)
    return "'" + plain if plain.lstrip(" '")[:1] in tuple("=+-@＝＋－＠") else plain


def epsilon_row(line: EpsilonResult, bound_digest: str = "") -> EpsilonRow:
    """Return the row of an epsilon result, with its mechanism and run.

    Args:
        line: the result.
        bound_digest: digest of what the plan says of bounds; "" = not known.

    """
    mechanism, found = line.accounted.mechanism, line.accounted.recomputed
    run = line.accounted.run
    return EpsilonRow.of(
        mechanism,
        {
            "arm": line.arm,
            "defense": line.defense.settings,
            "observers": line.observers,
            "verdict": line.verdict,
            "switched_off_by": line.defense.switched_off_by,
            "rounds": run.rounds,
            "recorded_rounds": run.recorded,
            "sampling_rate": run.sampling_rate if mechanism.is_drawn else 1.0,
            "client_sampling": run.sampling if run.samples_clients else "none",
            "claimed": mechanism.stated,
            "claimed_for": None if mechanism.stated is None else mechanism.stated_for,
            "claim": line.accounted.claim,
            "doubt": line.accounted.doubt
            if line.verdict in ("not confirmed", "unaccounted")
            else "",
            "is_recomputed": found is not None,
            "pld": None if found is None else found.pld,
            "rdp": None if found is None else found.rdp,
            "drawn": None if found is None else found.subsampled,
            "lower": None if found is None or mechanism.stated is None else found.lower,
            "ceiling": line.upper_bound,
            "measured": None
            if line.lower_bound is None
            else _bound_row(line.lower_bound, bound_digest),
            "estimated": [ClientEstimateRow.of(one) for one in line.estimates],
            "by_client": None
            if line.defense.clients is None
            else ClientEpsilonsRow.of(
                line.defense.clients, {"clients": len(line.defense.clients.accounts)}
            ),
        },
    )


def _bound_row(bound: EpsilonBound, digest: str) -> BoundByThreshold | BoundByGuesses:
    evidence = bound.evidence
    if isinstance(evidence, ThresholdRates):
        return BoundByThreshold(
            at_least=bound.epsilon,
            attack=bound.attack,
            threshold=evidence.threshold,
            found=IntervalEstimate.of(evidence.true_positive_rate),
            passed=IntervalEstimate.of(evidence.false_positive_rate),
            members=bound.members,
            outsiders=bound.non_members,
        )
    return BoundByGuesses(
        at_least=bound.epsilon,
        attack=bound.attack,
        above=evidence.above,
        below=evidence.below,
        said_in=evidence.counts.guessed_in,
        said_out=evidence.counts.guessed_out,
        right=evidence.counts.right,
        members=bound.members,
        outsiders=bound.non_members,
        method="curve" if bound.method == "curve" else "guesses",
        level=bound.level,
        digest=digest,
        estimate=bound.estimate,
    )
