"""Sentences on how well members are distinguished from non-members."""

from overheard.findings.exposures import Case
from overheard.findings.figures import SPACE, percent
from overheard.questions.membership.measures import MEASURES
from overheard.questions.membership.scorer import FALSE_POSITIVES
from overheard.questions.membership.statistics.record_rates import RecordRates, record_rates
from overheard.statistics.estimate import Estimate

ACCURACY = "membership_accuracy"


def membership_words(case: Case) -> tuple[str, ...]:
    """Describe the best attack at low false positive rates.

    Each rate has two intervals: over clients and runs, as everywhere in a report, and over
    records (`statistics.record_rates`).
    """
    rates = record_rates(case.findings)
    return (*_found(case, rates), _told_right(case, rates))


def _found(case: Case, rates: RecordRates) -> tuple[str, ...]:
    scored = [(rate, name) for rate, name in FALSE_POSITIVES if name in rates.found]
    if not scored:
        return ()
    shares = [
        f"{percent(case.whole[name].value.mean)} of members at {_rate(rate)} false positives "
        f"(95{SPACE}% interval {_spans(case, name, rates.found[name])}; guessing "
        f"{percent(case.whole[name].blind)})"
        for rate, name in scored
    ]
    rate, name = scored[-1]
    return (
        f"The attack finds {' and '.join(shares)}.",
        f"With {rates.outsiders:,} non-members, the 95{SPACE}% interval of the {_rate(rate)} "
        f"false positive rate is {MEASURES[name].span(rates.passing[name])}.",
    )


def _told_right(case: Case, rates: RecordRates) -> str:
    row = case.whole[ACCURACY]
    return (
        f"At a threshold fixed in advance, the attack classifies {percent(row.value.mean)} of "
        f"the records correctly, averaged over members and non-members (95{SPACE}% interval "
        f"{_spans(case, ACCURACY, rates.accuracy)}; guessing {percent(row.blind)}). Intervals "
        "over records treat the records of one client as independent, given its model."
    )


def _spans(case: Case, name: str, exact: Estimate) -> str:
    """Format both intervals; a single claim has only the interval over records."""
    measure, row = MEASURES[name], case.whole[name]
    over_records = f"{measure.span(exact)} over records"
    if row.value.low is None:
        return over_records
    units = "clients" if row.seeds == 1 else "clients and runs"
    return f"{measure.span(row.value)} over {units}, {over_records}"


def _rate(rate: float) -> str:
    return f"{100 * rate:g}{SPACE}%"
