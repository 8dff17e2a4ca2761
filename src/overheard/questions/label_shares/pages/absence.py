"""Sentences on how well attacks identify classes that a target does not hold."""

from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import format_percent
from overheard.findings.threat_results import AttackResult, ThreatResult

ABSENCE_SCORES = frozenset({"null_precision", "null_recall", "null_exact"})
"""Scores of attacks that claim which classes a target does not hold."""

DECAF = "decaf"


def absence_sentences(exposure: ThreatResult) -> tuple[str, ...]:
    """Describe how well each attack that claims absence does; compare with published claims."""
    claiming = [
        case for case in exposure.attack_results if case.rows_by_score.keys() >= ABSENCE_SCORES
    ]
    units = "runs" if exposure.target_kind == "cohort" else "clients"
    names = shorten_attack_names([case.label for case in exposure.attack_results])
    return tuple(_absence_sentence(case, names[case.label], units) for case in claiming)


def _absence_sentence(case: AttackResult, name: str, units: str) -> str:
    precision, recall, exact = (
        format_percent(case.rows_by_score[name].value.mean)
        for name in ("null_precision", "null_recall", "null_exact")
    )
    sentences = (
        f"Of the classes that {make_printable(name)} claims to be absent, {precision} are "
        "absent. "
        f"It finds {recall} of all absent classes, and exactly the right set for {exact} of "
        f"{units}."
    )
    # Dai et al. (Decaf, arXiv 2405.15316), abstract: "100% accuracy" on absent classes.
    is_decaf = any(finding.cell.part == DECAF for finding in case.findings)
    if is_decaf and case.rows_by_score["null_exact"].value.mean < 1:
        return f"{sentences} The published accuracy of 100 % is not reproduced here."
    return sentences
