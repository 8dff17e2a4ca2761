"""Figures that compare all arms and attacks."""

from collections.abc import Sequence

from overheard.drawing.charts import arms_chart
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Arm, Case, Exposure, by_threat, headline_row
from overheard.findings.figures import NO_FIGURE, Measure, beside
from overheard.findings.names import shown
from overheard.plans.registries import row_measure


def arms_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """Return one figure per threat, which compares all arms and attacks."""
    plates = []
    for title, exposures in by_threat(every).items():
        by_arm = {exposure.arm: exposure.cases for exposure in exposures}
        side = "left" if headline_row(exposures).better == "lower" else "right"
        measure = row_measure(headline_row(exposures))
        plates.append(
            Plate(
                title,
                "Each dot is the mean over clients and runs. The further a dot lies to the "
                f"{side} of guessing, the stronger the leak.",
                None,
                (Panel("", arms_chart(by_arm, measure, f"Comparison of arms: {title}")),),
                Table(
                    f"{measure.title} by arm and attack",
                    (
                        "Arm",
                        "Attack",
                        f"Result{measure.unit}",
                        "95 % interval",
                        "Uninformed guess",
                        _beside(exposures),
                        "Gain over guessing",
                        "95 % interval",
                    ),
                    tuple(
                        (shown(exposure.arm), *figures)
                        for exposure in exposures
                        for figures in _case_lines(exposure, measure)
                    ),
                    2,
                ),
                False,
            )
        )
    return tuple(plates)


def _beside(exposures: Sequence[Exposure]) -> str:
    words = beside(case.row for exposure in exposures for case in exposure.cases)
    return words[0].upper() + words[1:]


def _case_lines(exposure: Exposure, measure: Measure) -> list[tuple[str, ...]]:
    if not exposure.cases:
        return [("not measured", *[NO_FIGURE] * 6)]
    return [_case_line(case, measure) for case in exposure.cases]


def _case_line(case: Case, measure: Measure) -> tuple[str, ...]:
    row = case.row
    return (
        shown(case.label),
        measure.tell(row.value.mean),
        measure.span(row.value),
        measure.tell(row.blind),
        "; ".join(measure.tell(value) for value in row.references.values()) or NO_FIGURE,
        measure.tell(None if row.gain is None else row.gain.mean),
        measure.span(row.gain),
    )
