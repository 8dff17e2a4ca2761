"""Sentences and tables on the coverage of attacks' intervals and size estimates."""

from collections.abc import Sequence

from overheard.drawing.coverage import LEVEL_TEXT, coverage_sentences
from overheard.drawing.figures import ReportTable
from overheard.drawing.sentences import bracketed_interval
from overheard.findings.names import make_printable, name_other_clients, shorten_attack_names
from overheard.findings.number_format import NO_NUMBER, SPACE, format_number, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    AttackResult,
    ThreatResult,
    group_by_threat,
)
from overheard.questions.label_shares.measures import MEASURES

COLUMN_TITLES = (
    "Arm",
    "Attack",
    "True shares inside the interval",
    f"95{SPACE}% interval",
    "Mean width",
    "Doubted by the attack",
    "Number of examples wrong by a factor of",
    "True numbers of examples inside the interval",
)


def interval_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe the coverage and distrust of all intervals, and the best size estimate."""
    names = shorten_attack_names(
        [attack_result.label for attack_result in threat_result.attack_results]
    )
    sizes = [
        attack_result
        for attack_result in threat_result.attack_results
        if "size_factor" in attack_result.rows_by_score
    ]
    return (
        *coverage_sentences(threat_result, "coverage", MEASURES["coverage"], "share"),
        *(
            sentence
            for attack_result in threat_result.attack_results
            for sentence in _doubt_sentences(attack_result, names[attack_result.label])
        ),
        *(
            _size_sentence(attack_result, names[attack_result.label], threat_result)
            for attack_result in sizes[:1]
        ),
    )


def _doubt_sentences(attack_result: AttackResult, name: str) -> tuple[str, ...]:
    row = attack_result.rows_by_score.get("doubted")
    if row is None or row.value.mean == 0:
        return ()
    return (
        f"Intervals not trusted here: {make_printable(name)} itself doubts "
        f"{format_percent(row.value.mean)} of its claims. The updates differ from those of its "
        "virtual clients: its own examples differ in kind from the clients’, or the updates "
        "carry noise that it does not know.",
    )


def _size_sentence(attack_result: AttackResult, name: str, threat_result: ThreatResult) -> str:
    row, coverage = (
        attack_result.rows_by_score["size_factor"],
        attack_result.rows_by_score.get("size_coverage"),
    )
    cohort = f"{name_other_clients(threat_result.observers)} together"
    target = cohort if threat_result.target_kind == "cohort" else "a client"
    if row.value.mean == 0:
        # Sizes are reported with the updates, so nothing was estimated.
        return (
            f"{make_printable(name)} need not estimate how many examples {target} trained on: "
            "this number is sent with the updates."
        )
    sentence = (
        f"{make_printable(name)} estimates how many examples {target} trained on. It is wrong "
        f"by a factor of {_format_factor(row.value.mean)} on average{_factor_interval(row)}."
    )
    if coverage is None:
        return sentence
    return (
        f"{sentence} Its {LEVEL_TEXT} intervals contain the true number in "
        f"{format_percent(coverage.value.mean)} of cases"
        f"{bracketed_interval(coverage, MEASURES['size_coverage'])}."
    )


def _factor_interval(row: ScoreRow) -> str:
    low, high = row.value.low, row.value.high
    if low is None or high is None:
        return ""
    return f" (95{SPACE}% interval {_format_factor(low)} to {_format_factor(high)})"


def _format_factor(doublings: float) -> str:
    return format_number(2**doublings)


def interval_tables(arm_results: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Tabulate coverage and width of intervals, one table per threat.

    Rows use the most observed rounds. Attacks without intervals are left out.
    """
    tables = []
    for threat, threat_results in group_by_threat(arm_results).items():
        rows = tuple(
            _table_row(threat_result.arm, attack_result)
            for threat_result in threat_results
            for attack_result in threat_result.attack_results
            if attack_result.rows_by_score.keys() & {"coverage", "size_factor"}
        )
        if rows:
            caption = f"How often {LEVEL_TEXT} intervals contain the true value: {threat}"
            tables.append(ReportTable(caption, COLUMN_TITLES, rows, 2))
    return tuple(tables)


def _table_row(arm: str, attack_result: AttackResult) -> tuple[str, ...]:
    coverage, size = (
        attack_result.rows_by_score.get("coverage"),
        attack_result.rows_by_score.get("size_factor"),
    )
    return (
        make_printable(arm),
        make_printable(attack_result.label),
        _format_value(coverage),
        NO_NUMBER if coverage is None else MEASURES["coverage"].format_interval(coverage.value),
        _format_value(attack_result.rows_by_score.get("width")),
        _format_value(attack_result.rows_by_score.get("doubted")),
        NO_NUMBER if size is None else _format_factor(size.value.mean),
        _format_value(attack_result.rows_by_score.get("size_coverage")),
    )


def _format_value(row: ScoreRow | None) -> str:
    return NO_NUMBER if row is None else MEASURES[row.score].format(row.value.mean)
