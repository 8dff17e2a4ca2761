"""False and true verdicts in synthetic audits, and how often intervals cover."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from overheard.core.seeds import Seed
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_proportion
from overheard_studies.conclusion import Conclusion
from overheard_studies.measurements.synthetic import (
    AUDITS,
    LEAST_COVERAGE,
    MOST_IN_A_CELL,
    MOST_TOGETHER,
    AuditCell,
    FigureCell,
    draw_audit,
    draw_figures,
    draw_gains,
    figure_cells,
    null_cells,
    power_cells,
    share_cells,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

SEED = Seed(19)

QUICK_AUDITS = 40

POWER_BOUNDS = {0.5: 0.95, 0.2: 0.80}
"""Smallest share of "leaks", by the weight of the truth in a claim."""

Count = Callable[[Seed], Mapping[str, bool]]
"""Whether each thing that is counted is so in one synthetic audit."""


def _count(key: str, count: Count, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the shares of audits with each thing, with exact intervals."""
    audits = QUICK_AUDITS if run.quick else AUDITS
    name = key.partition(": ")[2]
    found = [count(SEED.child(name, number)) for number in range(audits)]
    for what in found[0]:
        share = estimate_proportion(float(sum(one[what] for one in found)), audits)
        setting = f"{audits} synthetic audits; {key}: {what.replace('_', ' ')}"
        yield make_value(f"{key}: {what}", setting, share)


def _verdicts(cell: AuditCell, seed: Seed) -> Mapping[str, bool]:
    drawn = draw_audit(cell, seed)
    return {"small_p": drawn.has_small_p, "leaks": drawn.leaks}


def _intervals(cell: AuditCell, seed: Seed) -> Mapping[str, bool]:
    covered = draw_gains(cell, seed)
    return {
        "one": covered.one,
        "best": covered.best,
        "wrongly_below": covered.is_wrongly_below,
    }


def _figures(cell: FigureCell, seed: Seed) -> Mapping[str, bool]:
    return {"covered": draw_figures(cell, seed)}


def _measurements() -> Iterator[Measurement]:
    for cell in share_cells():
        yield _measurement(f"intervals: {cell.key}", partial(_intervals, cell))
    for figures in figure_cells():
        yield _measurement(f"figures: {figures.key}", partial(_figures, figures))
    # Large cells take most of the time, so they come last.
    cells = sorted((*power_cells(), *null_cells()), key=lambda cell: cell.runs * cell.clients)
    for cell in cells:
        yield _measurement(f"verdicts: {cell.key}", partial(_verdicts, cell))


def _measurement(key: str, count: Count) -> Measurement:
    return Measurement(key, partial(_count, key, count))


def _shares(
    names: Iterable[str], runs: StudyRuns, values: Values
) -> Mapping[str, Estimate | None]:
    """Return the measured shares of these names, each as a number that chance does not move."""
    wanted = set(names)
    return {
        one.name: Estimate(one.value, one.value, one.value)
        for one in values
        if one.name in wanted and one.value is not None
    }


def _together(runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    found = _shares((f"verdicts: {cell.key}: small_p" for cell in null_cells()), runs, values)
    means = [one.mean for one in found.values() if one is not None]
    mean = sum(means) / len(means) if means else 0.0
    return {"all cells together": Estimate(mean, mean, mean)} if means else {}


def _conclusions() -> Iterator[Conclusion]:
    names = [f"verdicts: {cell.key}: small_p" for cell in null_cells()]
    yield Conclusion(
        "false_verdicts_are_rare",
        f"Where nothing leaks, at most {MOST_IN_A_CELL} of {AUDITS} audits of a cell have a "
        "small p-value.",
        partial(_shares, names),
        "below",
        MOST_IN_A_CELL / AUDITS,
    )
    yield Conclusion(
        "false_verdicts_are_rare_together",
        f"Of all audits without a leak, at most {MOST_TOGETHER:.1%} have a small p-value.",
        _together,
        "below",
        MOST_TOGETHER,
    )
    for truth, bound in POWER_BOUNDS.items():
        cells = [cell for cell in power_cells() if cell.truth == truth]
        names = [f"verdicts: {cell.key}: small_p" for cell in cells]
        names += [f"verdicts: {cell.key}: leaks" for cell in cells if cell.claims_gain]
        yield Conclusion(
            f"leaks_are_found_{truth:g}",
            f"Where claims know {truth:.0%} of the truth, {bound:.0%} of the audits find it.",
            partial(_shares, names),
            margin=bound,
        )
    names = [f"intervals: {cell.key}: {of}" for cell in share_cells() for of in ("one", "best")]
    yield Conclusion(
        "intervals_cover",
        f"In every cell, {LEAST_COVERAGE:.0%} of the intervals cover.",
        partial(_shares, names),
        margin=LEAST_COVERAGE,
    )


def calibration() -> Study:
    """Return how often verdicts and intervals are wrong, by cell; an hour of a core."""
    return Study(
        "calibration",
        "False and true verdicts, and coverage of intervals, in synthetic audits",
        "It repeats no paper. Claims and truths are synthetic; the code that compares them is "
        "that of the questions.",
        measurements=tuple(_measurements()),
        conclusions=tuple(_conclusions()),
    )
