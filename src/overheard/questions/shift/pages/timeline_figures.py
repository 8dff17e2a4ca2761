"""Figures of the evidence of a shift by round, one panel per target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overheard.core.claims import Timeline
from overheard.core.parties import Party
from overheard.drawing.chart_frame import ChartFrame
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.legends import LegendEntry, make_legend
from overheard.drawing.svg import ACCENT, INK, SOFT, inline_svg, name_values
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.names import make_printable, name_targets
from overheard.findings.number_format import NO_NUMBER, format_number
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.questions.shift.statistics.pairs import headline_draws

THRESHOLD_DASHES = (0, (5, 3))
SHIFT_DASHES = (0, (1, 1.6))


@dataclass(frozen=True, slots=True)
class AxisRange:
    """The limits of an axis."""

    low: float
    high: float


def timeline_chart(
    planned: Timeline,
    control: Timeline | None,
    since: int | None,
    axis_range: AxisRange,
    label: str,
) -> Markup:
    """Draw the statistic of a run with its threshold and alarm, and that of its control.

    Args:
        planned: the evidence in the planned run.
        control: the evidence in its control run; None = there is no control run.
        since: the true round of the shift, marked by a vertical line; None = no shift.
        axis_range: the limits of the vertical axis, the same in charts to be compared.
        label: the description of the chart.

    """
    frame = ChartFrame(300.0, 180.0, 46.0, 40.0, 12.0)
    rounds = sorted({*planned.rounds, *(control.rounds if control else ())})

    def draw(figure: Figure) -> None:
        axes = frame.axes(figure)
        if since is not None:
            axes.axvline(since, color=INK, ls=SHIFT_DASHES, lw=1.6)
        if control is not None:
            axes.plot(control.rounds, control.statistic, color=SOFT, lw=1.0)
        if planned.threshold is not None:
            axes.plot(planned.rounds, planned.threshold, color=INK, ls=THRESHOLD_DASHES, lw=1.2)
        (drawn,) = axes.plot(
            planned.rounds, planned.statistic, color=ACCENT, marker="o", ms=3.2
        )
        pairs = zip(planned.rounds, planned.statistic, strict=True)
        name_values(drawn, [f"round {x}: {format_number(y)}" for x, y in pairs])
        _mark_alarm(axes, planned)
        if rounds:
            margin = max(0.4, 0.03 * (rounds[-1] - rounds[0]))
            axes.set_xlim(rounds[0] - margin, rounds[-1] + margin)
            axes.set_xticks(rounds[:: ceil(len(rounds) / 7)])
        axes.set_ylim(axis_range.low, axis_range.high)
        axes.locator_params(axis="y", nbins=5)
        axes.tick_params(axis="y", labelcolor=SOFT, labelsize=11)
        axes.tick_params(axis="x", labelsize=11)
        axes.set_xlabel("round")
        axes.grid(axis="y")

    return inline_svg(draw, frame.width, frame.height, label)


def _mark_alarm(axes: Axes, shifted: Timeline) -> None:
    if shifted.alarm is None:
        return
    value = shifted.statistic[shifted.rounds.index(shifted.alarm)]
    axes.plot([shifted.alarm], [value], "D", color=INK, mfc="none", ms=9, mew=1.6)


def timeline_legend(label: str) -> Markup:
    """Return the legend of the lines and marks in the timelines."""
    return make_legend(
        [
            LegendEntry("planned run", ACCENT, "o", size=3.2),
            LegendEntry("control run", SOFT, width=1.0),
            LegendEntry("true shift", INK, dashes=":", width=1.6),
            LegendEntry("threshold", INK, dashes="--", width=1.2),
            LegendEntry("alarm", INK, "D", None, size=9.0, is_outline=True),
        ],
        label,
    )


MAX_ATTACKS = 3
"""The best attacks to draw for one group of observers."""

MAX_TARGETS = 12
"""Targets to draw from one run."""

MAX_RUNS = 3
"""Runs to draw if each has one target."""


@dataclass(frozen=True, slots=True)
class _DrawnTimeline:
    """A target's timelines: of the planned run and, if there is one, of its first control."""

    name: str
    finding: Finding
    planned: Timeline
    control: Timeline | None


def timeline_figures(audit: Audit, arms: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Draw a figure for each of the best attacks with timelines, arm by arm."""
    return tuple(
        report_figure
        for arm in arms
        for threat_result in arm.threat_results
        for report_figure in _threat_figures(
            threat_result, _findings_by_attack(threat_result, audit.findings)
        )
    )


def _findings_by_attack(
    threat_result: ThreatResult, findings: Sequence[Finding]
) -> Mapping[str, list[Finding]]:
    """Group the findings that have a timeline by their attack; the best attack comes first."""
    by_attack: dict[str, list[Finding]] = {
        attack_result.attack: [] for attack_result in threat_result.attack_results
    }
    threat = (
        threat_result.arm,
        threat_result.observers,
        threat_result.question,
        threat_result.target_kind,
    )
    for finding in findings:
        cell = finding.cell
        if finding.claimed.timeline is not None and threat == (
            cell.arm,
            cell.observers,
            cell.question,
            finding.target_kind,
        ):
            by_attack.setdefault(cell.attack, []).append(finding)
    return {attack: found for attack, found in by_attack.items() if found}


def _threat_figures(
    threat_result: ThreatResult, by_attack: Mapping[str, Sequence[Finding]]
) -> tuple[ReportFigure, ...]:
    return tuple(
        _attack_figure(threat_result, attack, found, len(by_attack))
        for attack, found in list(by_attack.items())[:MAX_ATTACKS]
        if any(not finding.cell.is_control for finding in found)
    )


def _attack_figure(
    threat_result: ThreatResult, attack: str, found: Sequence[Finding], attacks: int
) -> ReportFigure:
    planned = [finding for finding in found if not finding.cell.is_control]
    drawn = _select_timelines(planned, found, threat_result.observers)
    label = make_printable(threat_result.labels[attack])
    title = f"{make_printable(threat_result.arm)} · {threat_result.title} · {label}"
    axis_range = _axis_range(drawn)
    return ReportFigure(
        title,
        "The attack's test statistic by round; a larger value is stronger evidence of a shift. "
        "The value of a round rests on the rounds up to it alone. "
        f"{_selection_note(drawn, planned, attacks)}",
        timeline_legend(f"Legend: {title}"),
        tuple(
            Panel(
                one.name,
                timeline_chart(
                    one.planned,
                    one.control,
                    one.finding.true_since,
                    axis_range,
                    f"Evidence of a shift, {one.name}: {title}",
                ),
            )
            for one in drawn
        ),
        _table(drawn, title),
        is_folded=True,
    )


def _select_timelines(
    planned: Sequence[Finding], found: Sequence[Finding], observers: Sequence[Party]
) -> list[_DrawnTimeline]:
    """Select targets of the first run, those with a shift first.

    If that run has a single target, select this target in several runs.
    """
    draws = headline_draws(found)
    controls = {
        (finding.cell.seed, finding.target): finding.claimed.timeline
        for finding in found
        if finding.cell.is_control
        and (finding.cell.control, finding.cell.control_number) == (draws, 0)
    }
    first = min(finding.cell.seed for finding in planned)
    run = [finding for finding in planned if finding.cell.seed == first]
    if len(run) == 1:
        by_seed = sorted(planned, key=lambda finding: finding.cell.seed)
        selected = [finding for finding in by_seed if finding.target == run[0].target][
            :MAX_RUNS
        ]
    else:
        selected = sorted(run, key=lambda finding: finding.true_since is None)[:MAX_TARGETS]
    return [
        _DrawnTimeline(
            f"{_capitalise(name_targets(finding.targets, observers))}, "
            f"seed {finding.cell.seed}",
            finding,
            finding.claimed.timeline,
            controls.get((finding.cell.seed, finding.target)),
        )
        for finding in selected
        if finding.claimed.timeline is not None
    ]


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _axis_range(drawn: Sequence[_DrawnTimeline]) -> AxisRange:
    """Return limits that hold every line of these charts, with a margin."""
    values = [0.0]
    for one in drawn:
        control = one.control.statistic if one.control else ()
        values += chain(one.planned.statistic, one.planned.threshold or (), control)
    margin = 0.06 * (max(values) - min(values)) or 1.0
    return AxisRange(min(values) - margin if min(values) < 0 else 0.0, max(values) + margin)


def _selection_note(
    drawn: Sequence[_DrawnTimeline], planned: Sequence[Finding], attacks: int
) -> str:
    claims = f"The figure shows {len(drawn)} of {len(planned)} claims."
    best = (
        f" Only the {MAX_ATTACKS} best of {attacks} attacks have a figure."
        if attacks > MAX_ATTACKS
        else ""
    )
    is_partial = len(drawn) < len(planned) or best
    return f"{claims}{best} All others are in findings.json." if is_partial else ""


def _table(drawn: Sequence[_DrawnTimeline], title: str) -> ReportTable:
    rounds = sorted(
        {
            number
            for one in drawn
            for timeline in (one.planned, one.control)
            if timeline is not None
            for number in timeline.rounds
        }
    )
    return ReportTable(
        f"Evidence by round: {title}",
        (
            "Target",
            "Line",
            "True shift",
            "Alarm",
            "Claimed shift, looking back",
            *(f"{n}" for n in rounds),
        ),
        tuple(row for one in drawn for row in _table_rows(one, rounds)),
        text_columns=2,
    )


def _table_rows(one: _DrawnTimeline, rounds: Sequence[int]) -> list[tuple[str, ...]]:
    since = _round_text(one.finding.true_since)
    planned, rows = one.planned, list[tuple[str, ...]]()
    marks = (since, _round_text(planned.alarm), _round_text(planned.since))
    values = _values(planned, planned.statistic, rounds)
    rows.append((one.name, "planned run", *marks, *values))
    if planned.threshold is not None:
        no_marks = (NO_NUMBER,) * 3
        values = _values(planned, planned.threshold, rounds)
        rows.append((one.name, "threshold", *no_marks, *values))
    if one.control is not None:
        control = one.control
        marks = (NO_NUMBER, _round_text(control.alarm), _round_text(control.since))
        values = _values(control, control.statistic, rounds)
        rows.append((one.name, "control run", *marks, *values))
    return rows


def _values(timeline: Timeline, column: Sequence[float], rounds: Sequence[int]) -> list[str]:
    by_round = dict(zip(timeline.rounds, column, strict=True))
    return [format_number(by_round.get(number)) for number in rounds]


def _round_text(value: int | None) -> str:
    return NO_NUMBER if value is None else str(value)
