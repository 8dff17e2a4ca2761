"""The findings as files for machines and spreadsheets."""

import csv
import json
from collections.abc import Mapping, Sequence
from io import StringIO
from math import isfinite

from overheard.archive.seconds import Seconds
from overheard.core.claims import Timeline
from overheard.core.scorer import Score
from overheard.epsilon.bound import EpsilonBound, GuessEvidence, Rates
from overheard.epsilon.epsilon import EpsilonLine, epsilon_lines
from overheard.findings.exposures import About, Arm
from overheard.findings.finding import ArmRun, Audit, Cell, Finding, Refusal
from overheard.findings.frame import COLUMNS
from overheard.findings.names import shown
from overheard.findings.row import Row
from overheard.findings.traffic import Traffic
from overheard.statistics.estimate import Estimate

FORMAT = "overheard findings"

VERSION = 1
"""Goes up when a reader of the last version would misread a document."""

MOST_NUMBERS = 1000
"""Of a claim that stand in a table: those of thousands of records would fill it."""


def as_json(audit: Audit, every: Sequence[Arm]) -> str:
    """All that the audit found, as one document; a figure that is no number is null."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "title": audit.title,
        "subject": audit.subject,
        "class_names": audit.class_names,
        "arms": [_arm(run) for run in audit.arms],
        "summary": [
            _row(row, held.about)
            for arm in every
            for held in arm.exposures
            for row in held.rows
        ],
        "epsilon": [_epsilon(line) for line in epsilon_lines(audit)],
        "findings": [_finding(finding) for finding in audit.findings],
        "refusals": [_refusal(refusal) for refusal in audit.refusals],
        "plan": audit.plan,
        "versions": dict(audit.versions),
    }
    parts = (f"{json.dumps(key)}: {_laid_out(value)}" for key, value in document.items())
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def _laid_out(value: object) -> str:
    """A list with a line an entry, anything else on one line.

    To indent every number, of 5,000 targets with 100 candidates each, takes 20 times as long.
    """
    if not isinstance(value, list) or not value:
        return json.dumps(value, allow_nan=False)
    lines = (json.dumps(one, allow_nan=False, separators=(",", ":")) for one in value)
    return "[\n  " + ",\n  ".join(lines) + "\n ]"


def _arm(run: ArmRun) -> dict[str, object]:
    return {
        "arm": run.arm,
        "seed": run.seed,
        "defenses": [
            {
                "settings": defense.settings,
                "enforced_at": defense.enforced_at,
                "switched_off_by": defense.switched_off_by,
                "promise": defense.promise,
            }
            for defense in run.defenses
        ],
        "accuracy": {str(number): _figure(value) for number, value in run.accuracy.items()},
        "is_control": run.is_control,
        "answers": run.answers,
        "missing": run.missing,
        "bytes": None if run.traffic is None else _traffic(run.traffic),
        "seconds": None if run.seconds is None else _seconds(run.seconds),
        "has_truth": run.has_truth,
    }


def _traffic(traffic: Traffic) -> dict[str, int]:
    return {
        "up": traffic.up,
        "down": traffic.down,
        "answers": traffic.answers,
        "heard": traffic.heard,
    }


def _seconds(seconds: Seconds) -> dict[str, float | None]:
    return {"wall": _figure(seconds.wall), "cores": _figure(seconds.cores)}


def _row(row: Row, about: About) -> dict[str, object]:
    return {
        "arm": row.arm,
        "observers": row.observers,
        "attack": row.attack,
        "question": row.question,
        "about": about,
        "rounds": row.rounds,
        "score": row.score,
        "better": row.better,
        "value": _estimate(row.value),
        "blinds": _figures(row.blinds),
        "references": _figures(row.references),
        "blind": _figure(row.blind),
        "gain": None if row.gain is None else _estimate(row.gain),
        "targets": row.targets,
        "seeds": row.seeds,
    }


def _epsilon(line: EpsilonLine) -> dict[str, object]:
    mechanism, found = line.accounted.mechanism, line.accounted.recomputed
    return {
        "arm": line.arm,
        "defense": line.defense.settings,
        "observers": line.observers,
        "verdict": line.standing,
        "flaw": mechanism.flaw,
        "noised_at": mechanism.noised_at,
        "bounded_at": mechanism.bounded_at,
        "switched_off_by": line.defense.switched_off_by,
        "unit": mechanism.unit,
        "noise_multiplier": mechanism.noise_multiplier,
        "clip": mechanism.clip,
        "moves": mechanism.moves,
        "delta": mechanism.delta,
        "rounds": line.accounted.run.rounds,
        "steps": mechanism.steps,
        "sampling_rate": line.accounted.run.sampling_rate if mechanism.is_drawn else 1.0,
        "claimed": _figure(mechanism.stated),
        "claimed_for": None if mechanism.stated is None else mechanism.stated_for,
        "is_recomputed": found is not None,
        "pld": None if found is None else _figure(found.pld),
        "rdp": None if found is None else _figure(found.rdp),
        "drawn": None if found is None else _figure(found.drawn),
        "ceiling": _figure(line.ceiling),
        "measured": None if line.bound is None else _bound(line.bound),
    }


def _bound(bound: EpsilonBound) -> dict[str, object]:
    return {
        "at_least": bound.epsilon,
        "attack": bound.attack,
        **_evidence(bound.evidence),
        "members": bound.members,
        "outsiders": bound.outsiders,
    }


def _evidence(evidence: Rates | GuessEvidence) -> dict[str, object]:
    if isinstance(evidence, Rates):
        return {
            "threshold": evidence.threshold,
            "found": _estimate(evidence.found),
            "passed": _estimate(evidence.passed),
        }
    return {
        "above": _figure(evidence.above),
        "below": _figure(evidence.below),
        "said_in": evidence.tally.inside,
        "said_out": evidence.tally.outside,
        "right": evidence.tally.right,
    }


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {
        "mean": _figure(estimate.mean),
        "low": _figure(estimate.low),
        "high": _figure(estimate.high),
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        **_cell(finding.cell),
        "target": finding.target,
        "claimed": [_figure(number) for number in finding.claimed],
        "true": [_figure(number) for number in finding.true],
        "low": _ends(finding.low),
        "high": _ends(finding.high),
        "timeline": None if finding.timeline is None else _timeline(finding.timeline),
        "true_since": finding.true_since,
        "candidates": finding.candidates,
        "none_of_them": _figure(finding.none_of_them),
        "true_user": finding.true_user,
        "is_checked": finding.is_checked,
        "blind": {
            name: [_figure(number) for number in numbers]
            for name, numbers in finding.blind.items()
        },
        "scores": [_score(score) for score in finding.scores],
    }


def _timeline(timeline: Timeline) -> dict[str, object]:
    return {
        "rounds": timeline.rounds,
        "statistic": [_figure(value) for value in timeline.statistic],
        "threshold": _ends(timeline.threshold),
        "false_alarm_rate": timeline.false_alarm_rate,
        "alarm": timeline.alarm,
        "since": timeline.since,
    }


def _ends(ends: Sequence[float] | None) -> list[float | None] | None:
    return None if ends is None else [_figure(end) for end in ends]


def _cell(cell: Cell) -> dict[str, object]:
    return {
        "arm": cell.arm,
        "seed": cell.seed,
        "observers": cell.observers,
        "attack": cell.attack,
        "settings": cell.settings,
        "question": cell.question,
        "rounds": cell.rounds,
        "is_control": cell.is_control,
        "part": cell.part,
        "label": cell.label,
        "is_adaptive": cell.is_adaptive,
    }


def _score(score: Score) -> dict[str, object]:
    return {
        "name": score.name,
        "value": _figure(score.value),
        "better": score.better,
        "blinds": _figures(score.blinds),
        "references": _figures(score.references),
        "gain": _figure(score.gain),
    }


def _refusal(refusal: Refusal) -> dict[str, object]:
    return {**_cell(refusal.cell), "target": refusal.target, "missing": refusal.missing}


def _figures(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _figure(value) for name, value in values.items()}


def _figure(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else value


def as_csv(audit: Audit) -> str:
    """One line a finding and score; an empty cell is a figure that is no number.

    A finding without any score, such as that of a control, has one line of its own. Of a
    choice, whom or what the claim names first stands there; all its numbers, and those of a
    claim of more than `MOST_NUMBERS`, are in the document.
    """
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for finding in audit.findings:
        table.writerows(_line(finding, score) for score in finding.scores or (None,))
    return text.getvalue()


def _line(finding: Finding, score: Score | None) -> tuple[str | int | float | None, ...]:
    cell, timeline = finding.cell, finding.timeline
    return (
        _inert(cell.arm),
        cell.seed,
        _inert("; ".join(cell.observers)),
        _inert(cell.attack),
        _inert(cell.settings),
        _inert(cell.question),
        _inert(" ".join(map(str, cell.rounds))),
        _inert(finding.target),
        *([None] * 7 if score is None else _score_cells(score)),
        *_numbers(finding),
        None if finding.low is None else _inert(_listed(finding.low)),
        None if finding.high is None else _inert(_listed(finding.high)),
        str(cell.is_control).lower(),
        finding.true_since,
        None if timeline is None else timeline.since,
        None if timeline is None else timeline.alarm,
        _inert(finding.named),
        _figure(finding.none_of_them),
        None if finding.true_user is None else _inert(finding.true_user),
    )


def _numbers(finding: Finding) -> tuple[str | None, str | None]:
    if finding.candidates or len(finding.claimed) > MOST_NUMBERS:
        return (None, None)
    return (_inert(_listed(finding.claimed)), _inert(_listed(finding.true)))


def _score_cells(score: Score) -> tuple[str | float | None, ...]:
    return (
        _inert(score.name),
        score.better,
        _figure(score.value),
        _figure(score.blind),
        _figure(score.gain),
        _named(score.blinds),
        _named(score.references),
    )


def _listed(numbers: Sequence[float]) -> str:
    # Six digits: each score repeats them, and the document has them in full.
    return " ".join(f"{number:.6g}" for number in numbers)


def _named(values: Mapping[str, float]) -> str:
    return _inert("; ".join(f"{name}: {value!r}" for name, value in values.items()))


def _inert(text: str) -> str:
    """The text as no spreadsheet takes it for a formula, wide signs of Asian scripts included.

    A lone number that begins with a sign is text here too: only figures that we wrote as
    numbers are numbers.
    """
    plain = shown(text)
    return "'" + plain if plain.lstrip(" '")[:1] in tuple("=+-@＝＋－＠") else plain
