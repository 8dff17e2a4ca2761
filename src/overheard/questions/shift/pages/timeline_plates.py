"""The figures that follow the evidence of a shift round by round, target by target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from overheard.core.claims import Timeline
from overheard.core.parties import COHORT, Party
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import NO_FIGURE, digits
from overheard.findings.finding import Audit, Finding
from overheard.findings.names import called, shown
from overheard.questions.shift.pages.timeline_chart import Span, timeline_chart, timeline_legend

ATTACKS = 3
"""Attacks drawn for one group of observers: the best."""

TARGETS = 12
"""Targets drawn of one run."""

RUNS = 3
"""Runs drawn where there is one target in each."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One timeline with its name and its control."""

    name: str
    finding: Finding
    shifted: Timeline
    control: Timeline | None


def timeline_plates(audit: Audit, every: Sequence[Arm]) -> tuple[Plate, ...]:
    """A figure for each of the best attacks on each question about time, arm by arm."""
    return tuple(
        plate
        for arm in every
        for exposure in arm.exposures
        for plate in _of_exposure(exposure, _timed(exposure, audit.findings))
    )


def _timed(exposure: Exposure, findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """The findings with a timeline by attack, the best attack first."""
    held: dict[str, list[Finding]] = {case.attack: [] for case in exposure.cases}
    for finding in findings:
        cell = finding.cell
        place = (cell.arm, cell.observers, cell.question)
        about = "cohort" if finding.target == COHORT else "clients"
        if finding.timeline is not None and (*place, about) == (
            exposure.arm, exposure.observers, exposure.question, exposure.about
        ):  # fmt: skip
            held.setdefault(cell.attack, []).append(finding)
    return {attack: found for attack, found in held.items() if found}


def _of_exposure(
    exposure: Exposure, timed: Mapping[str, Sequence[Finding]]
) -> tuple[Plate, ...]:
    return tuple(
        _plate(exposure, attack, found, len(timed))
        for attack, found in list(timed.items())[:ATTACKS]
        if any(not finding.cell.is_control for finding in found)
    )


def _plate(exposure: Exposure, attack: str, found: Sequence[Finding], attacks: int) -> Plate:
    planned = [finding for finding in found if not finding.cell.is_control]
    drawn = _chosen(planned, found, exposure.observers)
    where = f"{shown(exposure.arm)} · {exposure.title} · {shown(exposure.labels[attack])}"
    height = _height(drawn)
    return Plate(
        where,
        "The statistic by which the attack tells a shift, round by round: the larger, the more "
        f"evidence. {_left_out(drawn, planned, attacks)}",
        timeline_legend(f"Legend: {where}"),
        tuple(
            Panel(
                one.name,
                timeline_chart(
                    one.shifted,
                    one.control,
                    one.finding.true_since,
                    height,
                    f"Evidence of a shift, {one.name}: {where}",
                ),
            )
            for one in drawn
        ),
        _table(drawn, where),
        True,
    )


def _chosen(
    planned: Sequence[Finding], found: Sequence[Finding], observers: Sequence[Party]
) -> list[_Drawn]:
    """The targets of the first run, those that shifted first; of one target, some runs."""
    controls = {
        (finding.cell.seed, finding.target): finding.timeline
        for finding in found
        if finding.cell.is_control
    }
    first = min(finding.cell.seed for finding in planned)
    run = [finding for finding in planned if finding.cell.seed == first]
    if len(run) == 1:
        by_seed = sorted(planned, key=lambda finding: finding.cell.seed)
        kept = [finding for finding in by_seed if finding.target == run[0].target][:RUNS]
    else:
        kept = sorted(run, key=lambda finding: finding.true_since is None)[:TARGETS]
    return [
        _Drawn(
            f"{_capital(called(finding.target, observers))}, seed {finding.cell.seed}",
            finding,
            finding.timeline,
            controls.get((finding.cell.seed, finding.target)),
        )
        for finding in kept
        if finding.timeline is not None
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _height(drawn: Sequence[_Drawn]) -> Span:
    """Room for every line of these charts, and a little more."""
    values = [0.0]
    for one in drawn:
        control = one.control.statistic if one.control else ()
        values += chain(one.shifted.statistic, one.shifted.threshold or (), control)
    room = 0.06 * (max(values) - min(values)) or 1.0
    return Span(min(values) - room if min(values) < 0 else 0.0, max(values) + room)


def _left_out(drawn: Sequence[_Drawn], planned: Sequence[Finding], attacks: int) -> str:
    said = f"Drawn are {len(drawn)} of {len(planned)} answers"
    best = f", and the {ATTACKS} best of {attacks} attacks" if attacks > ATTACKS else ""
    rest = len(drawn) < len(planned) or best
    return f"{said}{best}; the others are in findings.json." if rest else ""


def _table(drawn: Sequence[_Drawn], where: str) -> Table:
    rounds = sorted(
        {
            number
            for one in drawn
            for timeline in (one.shifted, one.control)
            if timeline is not None
            for number in timeline.rounds
        }
    )
    return Table(
        f"Evidence by round: {where}",
        ("Target", "Line", "True shift", "Alarm", "Guess", *(f"{n}" for n in rounds)),
        tuple(line for one in drawn for line in _lines(one, rounds)),
        2,
    )


def _lines(one: _Drawn, rounds: Sequence[int]) -> list[tuple[str, ...]]:
    since = _number(one.finding.true_since)
    run, lines = one.shifted, list[tuple[str, ...]]()
    told = (since, _number(run.alarm), _number(run.since))
    lines.append((one.name, "planned run", *told, *_values(run, run.statistic, rounds)))
    if run.threshold is not None:
        nothing = (NO_FIGURE,) * 3
        lines.append((one.name, "threshold", *nothing, *_values(run, run.threshold, rounds)))
    if one.control is not None:
        held = one.control
        told = (NO_FIGURE, _number(held.alarm), _number(held.since))
        lines.append((one.name, "control run", *told, *_values(held, held.statistic, rounds)))
    return lines


def _values(run: Timeline, column: Sequence[float], rounds: Sequence[int]) -> list[str]:
    held = dict(zip(run.rounds, column, strict=True))
    return [digits(held.get(number)) for number in rounds]


def _number(value: int | None) -> str:
    return NO_FIGURE if value is None else str(value)
