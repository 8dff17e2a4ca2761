"""Sentences on how well members are distinguished from non-members."""

from overheard.findings.number_format import SPACE, format_percent
from overheard.findings.threat_results import AttackResult
from overheard.questions.membership.measures import MEASURES
from overheard.questions.membership.scorer import FALSE_POSITIVE_RATES
from overheard.questions.membership.statistics.record_rates import (
    RecordRates,
    estimate_record_rates,
)
from overheard.statistics.estimate import Estimate

ACCURACY = "membership_accuracy"


def membership_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    """Describe the best attack at low false positive rates.

    Each rate has two intervals: over clients and runs, as everywhere in a report, and over
    records (`statistics.record_rates`).
    """
    rates = estimate_record_rates(attack_result.findings)
    return (
        *_true_positive_sentences(attack_result, rates),
        _accuracy_sentence(attack_result, rates),
    )


def _true_positive_sentences(
    attack_result: AttackResult, rates: RecordRates
) -> tuple[str, ...]:
    scored = [
        (rate, name) for rate, name in FALSE_POSITIVE_RATES if name in rates.true_positive_rates
    ]
    if not scored:
        return ()
    shares = [
        f"{format_percent(attack_result.rows_by_score[name].value.mean)} of members at "
        f"{_rate_text(rate)} false positives "
        f"(95{SPACE}% interval "
        f"{_intervals(attack_result, name, rates.true_positive_rates[name])}; "
        f"guessing {format_percent(attack_result.rows_by_score[name].blind)})"
        for rate, name in scored
    ]
    rate, name = scored[-1]
    return (
        f"The attack finds {' and '.join(shares)}.",
        f"With {rates.non_members:,} non-members, the 95{SPACE}% interval of the "
        f"{_rate_text(rate)} "
        "false positive rate is "
        f"{MEASURES[name].format_interval(rates.false_positive_rates[name])}.",
    )


def _accuracy_sentence(attack_result: AttackResult, rates: RecordRates) -> str:
    row = attack_result.rows_by_score[ACCURACY]
    return (
        "At a threshold fixed in advance, the attack classifies "
        f"{format_percent(row.value.mean)} of "
        f"the records correctly, averaged over members and non-members (95{SPACE}% interval "
        f"{_intervals(attack_result, ACCURACY, rates.accuracy)}; "
        f"guessing {format_percent(row.blind)}). "
        "Intervals "
        "over records treat the records of one client as independent, given its model."
    )


def _intervals(attack_result: AttackResult, name: str, exact: Estimate) -> str:
    """Format both intervals; a single claim has only the interval over records."""
    measure, row = MEASURES[name], attack_result.rows_by_score[name]
    over_records = f"{measure.format_interval(exact)} over records"
    if row.value.low is None:
        return over_records
    units = "clients" if row.seeds == 1 else "clients and runs"
    return f"{measure.format_interval(row.value)} over {units}, {over_records}"


def _rate_text(rate: float) -> str:
    return f"{100 * rate:g}{SPACE}%"
