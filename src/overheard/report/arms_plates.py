"""The figures that set all arms and attacks side by side."""

from collections.abc import Sequence

from overheard.drawing.charts import arms_chart
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Arm, Case, Exposure, by_threat, headline_row
from overheard.findings.figures import NO_FIGURE, Measure, beside
from overheard.findings.names import shown
from overheard.plans.kinds import measure_of


def arms_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """One figure per observers and question: all arms and attacks side by side."""
    plates = []
    for asked, exposures in by_threat(every).items():
        held = {exposure.arm: exposure.cases for exposure in exposures}
        side = "left" if headline_row(exposures).better == "lower" else "right"
        told = measure_of(headline_row(exposures))
        plates.append(
            Plate(
                asked,
                "Each dot is the mean over clients and runs. The further a dot lies from the "
                f"blind guess, to the {side}, the more is read.",
                None,
                (Panel("", arms_chart(held, told, f"Arms side by side: {asked}")),),
                Table(
                    f"{told.title} by arm and attack",
                    (
                        "Arm",
                        "Attack",
                        f"Attack{told.unit}",
                        "95 % interval",
                        "Blind guess",
                        _beside(exposures),
                        "Gain over blind",
                        "95 % interval",
                    ),
                    tuple(
                        (shown(exposure.arm), *figures)
                        for exposure in exposures
                        for figures in _case_lines(exposure, told)
                    ),
                    2,
                ),
                False,
            )
        )
    return tuple(plates)


def _beside(exposures: Sequence[Exposure]) -> str:
    told = beside(case.row for exposure in exposures for case in exposure.cases)
    return told[0].upper() + told[1:]


def _case_lines(exposure: Exposure, told: Measure) -> list[tuple[str, ...]]:
    if not exposure.cases:
        return [("not measured", *[NO_FIGURE] * 6)]
    return [_case_line(case, told) for case in exposure.cases]


def _case_line(case: Case, told: Measure) -> tuple[str, ...]:
    row = case.row
    return (
        shown(case.label),
        told.tell(row.value.mean),
        told.span(row.value),
        told.tell(row.blind),
        "; ".join(told.tell(value) for value in row.references.values()) or NO_FIGURE,
        told.tell(None if row.gain is None else row.gain.mean),
        told.span(row.gain),
    )
