"""Success rates of the tests of quadruples, with intervals over federations."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np

from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_proportion
from overheard.statistics.run_means import estimate_mean
from overheard_studies.estimates import reproduced_value
from overheard_studies.flip.attribute_tests import (
    OTHER_START,
    PER_CLIENT_TESTS,
    SAMPLES,
    TESTS,
    QuadrupleOutcome,
)
from overheard_studies.flip.published_numbers import AttributeRow
from overheard_studies.reproduced_value import ReproducedValue

PUBLISHED_TESTS = (SAMPLES, OTHER_START)
"""The tests with a published value. The paper does not say whether its four federations started
alike, so its value is shown for both."""

SAMPLES_AS_TRIALS = f"{SAMPLES}_each_a_trial"


def make_row_values(
    row: AttributeRow, context: str, answers: Sequence[QuadrupleOutcome]
) -> tuple[ReproducedValue, ...]:
    """Return every test of one row of Table II, and the paper's with samples as trials.

    Args:
        row: row of the paper's table.
        context: description of what it was measured on.
        answers: answers of all seeds.

    """
    prefix = f"row{row.number}"
    values = [
        _figure(
            prefix,
            test,
            context,
            answers,
            row.attack_accuracy if test in PUBLISHED_TESTS else None,
        )
        for test in TESTS
    ]
    samples = [one for one in answers if one.test == SAMPLES]
    hits = float(sum(one.hits for one in samples))
    samples_as_trials = estimate_proportion(hits, sum(one.trials for one in samples))
    setting = f"{context}; {TESTS[SAMPLES]}, interval with each sample as a trial"
    return (
        *values,
        reproduced_value(
            f"{prefix}_{SAMPLES_AS_TRIALS}", setting, samples_as_trials, None, "higher"
        ),
    )


def make_pooled_values(
    rows: Sequence[AttributeRow], context: str, answers: Sequence[QuadrupleOutcome]
) -> tuple[ReproducedValue, ...]:
    """Return every test over all rows, with the mean of the published values."""
    published = fmean(row.attack_accuracy for row in rows)
    return tuple(
        _figure("all", test, context, answers, published if test in PUBLISHED_TESTS else None)
        for test in TESTS
    )


def make_unavailable_value(row: AttributeRow) -> ReproducedValue:
    """Return the published value of a row whose data are not available."""
    context = f"Table II, row {row.number}, {row.data}"
    return ReproducedValue(
        f"row{row.number}_{SAMPLES}",
        f"{context}; not run: Overheard has no {row.data}",
        None,
        None,
        None,
        row.attack_accuracy,
        "higher",
    )


def estimate_success_rate(test: str, answers: Iterable[QuadrupleOutcome]) -> Estimate | None:
    """Estimate a test's success rate, 0..1; None if it was not run.

    All federations have equal weight, and all decisions about a federation form one unit. If a
    test decides often about each federation, the interval is that of `estimate_mean`. If it
    decides once per client, or is always right or always wrong about each federation, it is
    that of Clopper and Pearson. A federation is then one trial, as its five clients start every
    round with the same model.
    """
    shares = defaultdict[tuple[int, str], list[float]](list)
    for one in answers:
        if one.test == test:
            shares[one.seed, one.task].append(one.hits / one.trials)
    if not shares:
        return None
    values = np.array([fmean(several) for several in shares.values()])
    if test in PER_CLIENT_TESTS or set(values) <= {0.0, 1.0}:
        return estimate_proportion(float(values.sum()), len(values))
    return estimate_mean(values, np.array([seed for seed, _ in shares]))


def _figure(
    prefix: str,
    test: str,
    context: str,
    answers: Sequence[QuadrupleOutcome],
    published: float | None,
) -> ReproducedValue:
    rate, name = estimate_success_rate(test, answers), f"{prefix}_{test}"
    if rate is None:
        setting = f"{context}; {TESTS[test]}: not measured, it needs at least two seeds"
        return ReproducedValue(name, setting, None, None, None, published, "higher")
    return reproduced_value(name, f"{context}; {TESTS[test]}", rate, published, "higher")
