"""How often the tests of quadruples were right, with intervals over federations."""

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
from overheard.statistics.estimate import Estimate, estimate
from overheard.statistics.exact import proportion

PUBLISHED = (SAMPLES, OTHER_START)
"""The paper does not say whether its four federations began alike: its number stands beside
both."""

EACH_A_TRIAL = f"{SAMPLES}_each_a_trial"


def row_figures(
    row: AttributeRow, where: str, answers: Sequence[QuadrupleAnswer]
) -> tuple[Figure, ...]:
    """Every test of one row of Table II, and the paper's as if samples were independent.

    Args:
        row: as printed.
        where: what it was measured on.
        answers: of all seeds.

    """
    prefix = f"row{row.number}"
    told = [
        _figure(prefix, test, where, answers, row.attack if test in PUBLISHED else None)
        for test in TESTS
    ]
    samples = [one for one in answers if one.test == SAMPLES]
    hits = float(sum(one.hits for one in samples))
    naive = proportion(hits, sum(one.trials for one in samples))
    words = f"{where}; {TESTS[SAMPLES]}, the interval as if each sample stood for itself"
    return (*told, figure(f"{prefix}_{EACH_A_TRIAL}", words, naive, None, "higher"))


def pooled_figures(
    rows: Sequence[AttributeRow], where: str, answers: Sequence[QuadrupleAnswer]
) -> tuple[Figure, ...]:
    """Every test over all rows, beside the mean of the published ones."""
    published = fmean(row.attack for row in rows)
    return tuple(
        _figure("all", test, where, answers, published if test in PUBLISHED else None)
        for test in TESTS
    )


def not_run(row: AttributeRow) -> Figure:
    """A row whose data are not at hand, with what was published alone."""
    where = f"Table II, row {row.number}, {row.data}"
    return Figure(
        f"row{row.number}_{SAMPLES}",
        f"{where}; not run: Overheard has no {row.data}",
        None,
        None,
        None,
        row.attack,
        "higher",
    )


def right(test: str, answers: Iterable[QuadrupleAnswer]) -> Estimate | None:
    """How often a test was right (0..1), federations weighing alike; None if it was not run.

    All answers about a federation go together. Where a test answers often about each, runs and
    then federations are drawn, with all that was answered about them. Where it decides once a
    client, or is throughout right or wrong about each, so that there is nothing to draw, the
    interval is that of Clopper and Pearson with a federation as one trial: five clients that
    start every round alike are hardly more.
    """
    shares = defaultdict[tuple[int, str], list[float]](list)
    for one in answers:
        if one.test == test:
            shares[one.seed, one.task].append(one.hits / one.trials)
    if not shares:
        return None
    values = np.array([fmean(several) for several in shares.values()])
    if test in DECISIONS or set(values) <= {0.0, 1.0}:
        return proportion(float(values.sum()), len(values))
    return estimate(values, np.array([seed for seed, _ in shares]), BOOTSTRAP)


def _figure(
    prefix: str,
    test: str,
    where: str,
    answers: Sequence[QuadrupleAnswer],
    published: float | None,
) -> Figure:
    told, name = right(test, answers), f"{prefix}_{test}"
    if told is None:
        words = f"{where}; {TESTS[test]}: not measured, it takes two seeds or more"
        return Figure(name, words, None, None, None, published, "higher")
    return figure(name, f"{where}; {TESTS[test]}", told, published, "higher")
