"""Figures that compare all arms and attacks."""

from collections.abc import Sequence

from overheard.drawing.charts import arms_chart, marks_legend
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, Measure, reference_label
from overheard.findings.threat_results import (
    ArmResult,
    AttackResult,
    ThreatResult,
    first_headline_row,
    group_by_threat,
)
from overheard.plans.registries import row_measure


def arm_figures(arm_results: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Return one figure per threat, which compares all arms and attacks."""
    report_figures = []
    for title, threat_results in group_by_threat(arm_results).items():
        by_arm = {
            threat_result.arm: threat_result.attack_results for threat_result in threat_results
        }
        side = "left" if first_headline_row(threat_results).better == "lower" else "right"
        measure = row_measure(first_headline_row(threat_results))
        report_figures.append(
            ReportFigure(
                title,
                "Each dot is the mean over clients and runs. The further a dot lies to the "
                f"{side} of guessing, the stronger the leak.",
                marks_legend(
                    [one for results in by_arm.values() for one in results],
                    f"Legend: comparison of arms, {title}",
                ),
                (Panel("", arms_chart(by_arm, measure, f"Comparison of arms: {title}")),),
                ReportTable(
                    f"{measure.title} by arm and attack",
                    (
                        "Arm",
                        "Attack",
                        f"Result{measure.unit}",
                        "95 % interval",
                        "Uninformed guess",
                        _references_header(threat_results),
                        "Gain over guessing",
                        "95 % interval",
                    ),
                    tuple(
                        (make_printable(threat_result.arm), *figures)
                        for threat_result in threat_results
                        for figures in _threat_rows(threat_result, measure)
                    ),
                    2,
                ),
                True,
            )
        )
    return tuple(report_figures)


def _references_header(threat_results: Sequence[ThreatResult]) -> str:
    words = reference_label(
        attack_result.headline_row
        for threat_result in threat_results
        for attack_result in threat_result.attack_results
    )
    return words[0].upper() + words[1:]


def _threat_rows(threat_result: ThreatResult, measure: Measure) -> list[tuple[str, ...]]:
    if not threat_result.attack_results:
        return [("not measured", *[NO_NUMBER] * 6)]
    return [
        _attack_row(attack_result, measure) for attack_result in threat_result.attack_results
    ]


def _attack_row(attack_result: AttackResult, measure: Measure) -> tuple[str, ...]:
    row = attack_result.headline_row
    return (
        make_printable(attack_result.label),
        measure.format(row.value.mean),
        measure.format_interval(row.value),
        measure.format(row.best_uninformed),
        "; ".join(measure.format(value) for value in row.references.values()) or NO_NUMBER,
        measure.format(None if row.gain is None else row.gain.mean),
        measure.format_gain_interval(row.gain),
    )
