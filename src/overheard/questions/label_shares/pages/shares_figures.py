"""Figures that compare each client's true shares with the inferred ones."""

from collections.abc import Sequence

import numpy as np

from overheard.core.claims import Interval
from overheard.drawing.claim_tables import MAX_TARGETS
from overheard.drawing.coverage import (
    LEVEL_TEXT,
    doubt_sentences,
    learning_curve_sentences,
)
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.shares_chart import shares_chart, shares_legend
from overheard.findings.finding import Finding
from overheard.findings.names import make_printable, name_targets
from overheard.findings.number_format import format_number
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult


def shares_figures(
    arm_results: Sequence[ArmResult], class_names: Sequence[str]
) -> tuple[ReportFigure, ...]:
    """Draw true and claimed shares of each client for the best attack on each arm."""
    return tuple(
        _shares_figure(threat_result, class_names)
        for arm in arm_results
        for threat_result in arm.threat_results
        if threat_result.attack_results
        and _has_shares(threat_result.attack_results[0], len(class_names))
    )


def _has_shares(attack_result: AttackResult, classes: int) -> bool:
    return "l1" in attack_result.rows_by_score and all(
        len(finding.claimed.numbers) == len(finding.true_numbers) == classes
        for finding in attack_result.findings
    )


def _shares_figure(threat_result: ThreatResult, class_names: Sequence[str]) -> ReportFigure:
    attack_result = threat_result.attack_results[0]
    seed = min(finding.cell.seed for finding in attack_result.findings)
    findings = [finding for finding in attack_result.findings if finding.cell.seed == seed]
    shown_findings = _most_different(findings)
    top = max(
        max(*one.true_numbers, *one.claimed.numbers, *(one.claimed.high or ()))
        for one in shown_findings
    )
    has_intervals = any(stated_interval(finding) is not None for finding in shown_findings)
    names = {
        one.target: name_targets(one.targets, threat_result.observers) for one in shown_findings
    }
    label = make_printable(attack_result.label)
    where = f"{make_printable(threat_result.arm)} · {threat_result.title} · {label}"
    return ReportFigure(
        where,
        " ".join(
            (
                _caption(has_intervals)
                + _omission_note(attack_result, len(shown_findings), len(findings), seed),
                *doubt_sentences(findings),
                *learning_curve_sentences(findings),
            )
        ),
        shares_legend(
            "true share",
            f"{LEVEL_TEXT} interval of the claim" if has_intervals else "",
            f"Legend: {where}",
        ),
        tuple(
            Panel(
                names[finding.target],
                shares_chart(
                    class_names,
                    finding.true_numbers,
                    finding.claimed.numbers,
                    stated_interval(finding),
                    top,
                    f"True and inferred shares of {names[finding.target]}: {where}",
                ),
            )
            for finding in shown_findings
        ),
        ReportTable(
            f"True → inferred share of each class in %"
            f"{f' (with {LEVEL_TEXT} interval)' if has_intervals else ''}: {where}",
            ("Client", *map(make_printable, class_names)),
            tuple((names[finding.target], *_cells(finding)) for finding in shown_findings),
            1,
        ),
        True,
    )


def stated_interval(finding: Finding) -> Interval | None:
    """Return the attack's intervals of the shares; None if it states none."""
    if finding.claimed.low is None or finding.claimed.high is None:
        return None
    return Interval(finding.claimed.low, finding.claimed.high)


def _cells(finding: Finding) -> list[str]:
    cells = [
        f"{format_number(100 * true)} → {format_number(100 * claimed)}"
        for true, claimed in zip(finding.true_numbers, finding.claimed.numbers, strict=True)
    ]
    bounds = stated_interval(finding)
    if bounds is None:
        return cells
    return [
        f"{cell} ({format_number(100 * low)} to {format_number(100 * high)})"
        for cell, low, high in zip(cells, bounds.low, bounds.high, strict=True)
    ]


def _most_different(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Select the findings whose true shares are furthest from the mean, in given order."""
    if len(findings) <= MAX_TARGETS:
        return findings
    true = np.array([finding.true_numbers for finding in findings])
    distances = np.abs(true - true.mean(0)).sum(1)  # (clients,)
    furthest = np.sort(np.argsort(-distances, kind="stable")[:MAX_TARGETS])
    return [findings[index] for index in furthest]


def _caption(has_intervals: bool) -> str:
    caption = "Bar: true share. Dot: inferred share."
    return f"{caption} Line: its {LEVEL_TEXT} interval." if has_intervals else caption


def _omission_note(
    attack_result: AttackResult, shown_clients: int, clients: int, seed: int
) -> str:
    note, seeds = "", len({finding.cell.seed for finding in attack_result.findings})
    if shown_clients < clients:
        note += (
            f" Shown: the {shown_clients} of {clients} clients whose true shares differ most "
            "from the average. findings.csv has all clients."
        )
    if seeds > 1:
        note += f" Shown: the run with seed {seed}, one of {seeds}. findings.csv has all runs."
    return note
