"""Success rates of the tests of quadruples, with intervals over federations."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np

from overheard.papers.figure import Figure
from overheard.papers.flip.attribute_tests import (
    DECISIONS,
    OTHER_START,
    SAMPLES,
    TESTS,
    QuadrupleAnswer,
)
from overheard.papers.flip.printed import AttributeRow
from overheard.papers.reading import BOOTSTRAP, figure
from overheard.statistics.estimate import Estimate, estimate_mean
from overheard.statistics.exact_intervals import estimate_proportion

PUBLISHED = (SAMPLES, OTHER_START)
"""The tests with a published value. The paper does not say whether its four federations started
alike, so its value is shown for both."""

EACH_A_TRIAL = f"{SAMPLES}_each_a_trial"


def row_figures(
    row: AttributeRow, context: str, answers: Sequence[QuadrupleAnswer]
) -> tuple[Figure, ...]:
    """Return every test of one row of Table II, and the paper's with samples as trials.

    Args:
        row: row of the paper's table.
        context: description of what it was measured on.
        answers: answers of all seeds.

    """
    prefix = f"row{row.number}"
    values = [
        _figure(prefix, test, context, answers, row.attack if test in PUBLISHED else None)
        for test in TESTS
    ]
    samples = [one for one in answers if one.test == SAMPLES]
    hits = float(sum(one.hits for one in samples))
    samples_as_trials = estimate_proportion(hits, sum(one.trials for one in samples))
    setting = f"{context}; {TESTS[SAMPLES]}, interval with each sample as a trial"
    return (
        *values,
        figure(f"{prefix}_{EACH_A_TRIAL}", setting, samples_as_trials, None, "higher"),
    )


def pooled_figures(
    rows: Sequence[AttributeRow], context: str, answers: Sequence[QuadrupleAnswer]
) -> tuple[Figure, ...]:
    """Return every test over all rows, with the mean of the published values."""
    published = fmean(row.attack for row in rows)
    return tuple(
        _figure("all", test, context, answers, published if test in PUBLISHED else None)
        for test in TESTS
    )


def not_run(row: AttributeRow) -> Figure:
    """Return the published value of a row whose data are not available."""
    context = f"Table II, row {row.number}, {row.data}"
    return Figure(
        f"row{row.number}_{SAMPLES}",
        f"{context}; not run: Overheard has no {row.data}",
        None,
        None,
        None,
        row.attack,
        "higher",
    )


def right(test: str, answers: Iterable[QuadrupleAnswer]) -> Estimate | None:
    """Estimate a test's success rate, 0..1; None if it was not run.

    All federations have equal weight, and all decisions about a federation form one unit. If a
    test decides often about each federation, the bootstrap draws runs and then federations. If
    it decides once per client, or is always right or always wrong about each federation, there
    is nothing to draw. The interval is then that of Clopper and Pearson with a federation as
    one trial, as its five clients start every round with the same model.
    """
    shares = defaultdict[tuple[int, str], list[float]](list)
    for one in answers:
        if one.test == test:
            shares[one.seed, one.task].append(one.hits / one.trials)
    if not shares:
        return None
    values = np.array([fmean(several) for several in shares.values()])
    if test in DECISIONS or set(values) <= {0.0, 1.0}:
        return estimate_proportion(float(values.sum()), len(values))
    return estimate_mean(values, np.array([seed for seed, _ in shares]), BOOTSTRAP)


def _figure(
    prefix: str,
    test: str,
    context: str,
    answers: Sequence[QuadrupleAnswer],
    published: float | None,
) -> Figure:
    rate, name = right(test, answers), f"{prefix}_{test}"
    if rate is None:
        setting = f"{context}; {TESTS[test]}: not measured, it needs at least two seeds"
        return Figure(name, setting, None, None, None, published, "higher")
    return figure(name, f"{context}; {TESTS[test]}", rate, published, "higher")
