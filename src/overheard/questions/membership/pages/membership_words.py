"""Tells in plain sentences how well records that were trained on are told from others."""

from overheard.findings.exposures import Case
from overheard.findings.figures import SPACE, percent
from overheard.questions.membership.measures import MEASURES
from overheard.questions.membership.scorer import FALSE_POSITIVES
from overheard.questions.membership.statistics.record_rates import RecordRates, record_rates
from overheard.statistics.estimate import Estimate

ACCURACY = "membership_accuracy"


def membership_words(case: Case) -> tuple[str, ...]:
    """What the best attack is worth where it may hardly err.

    Of each rate two intervals: over clients and runs, as everywhere in a report, and over
    records (`statistics.record_rates`).
    """
    rates = record_rates(case.findings)
    return (*_found(case, rates), _told_right(case, rates))


def _found(case: Case, rates: RecordRates) -> tuple[str, ...]:
    told = [(rate, name) for rate, name in FALSE_POSITIVES if name in rates.found]
    if not told:
        return ()
    found = [
        f"{percent(case.whole[name].value.mean)} at {_rate(rate)} false positives (95{SPACE}% "
        f"interval {_spans(case, name, rates.found[name])}; guessing "
        f"{percent(case.whole[name].blind)})"
        for rate, name in told
    ]
    rate, name = told[-1]
    return (
        f"Of the records that were trained on it finds {' and '.join(found)}.",
        f"With {rates.outsiders:,} records of nobody, what is told as {_rate(rate)} false "
        f"positives may truly be {MEASURES[name].span(rates.passing[name])}.",
    )


def _told_right(case: Case, rates: RecordRates) -> str:
    row = case.whole[ACCURACY]
    return (
        f"Told apart at a threshold that is set beforehand, {percent(row.value.mean)} of both "
        f"kinds are told right (95{SPACE}% interval {_spans(case, ACCURACY, rates.accuracy)}; "
        f"guessing {percent(row.blind)}). Over records, those of one client are taken as "
        "independent given its model."
    )


def _spans(case: Case, name: str, exact: Estimate) -> str:
    """Both intervals; of one answer in one run there is but the one over records."""
    told, row = MEASURES[name], case.whole[name]
    over_records = f"{told.span(exact)} over records"
    if row.value.low is None:
        return over_records
    over = "clients" if row.seeds == 1 else "clients and runs"
    return f"{told.span(row.value)} over {over}, {over_records}"


def _rate(rate: float) -> str:
    return f"{100 * rate:g}{SPACE}%"
