"""Sentences on how well attacks identify classes that a target does not hold."""

from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import format_percent
from overheard.findings.threat_results import AttackResult, ThreatResult

ABSENCE_SCORES = frozenset({"null_precision", "null_recall", "null_exact"})
"""Scores of attacks that claim which classes a target does not hold."""

DECAF = "decaf"


def absence_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe how well each attack that claims absence does; compare with published claims."""
    claiming = [
        attack_result
        for attack_result in threat_result.attack_results
        if attack_result.rows_by_score.keys() >= ABSENCE_SCORES
    ]
    units = "runs" if threat_result.target_kind == "cohort" else "clients"
    names = shorten_attack_names(
        [attack_result.label for attack_result in threat_result.attack_results]
    )
    return tuple(
        _absence_sentence(attack_result, names[attack_result.label], units)
        for attack_result in claiming
    )


def _absence_sentence(attack_result: AttackResult, name: str, units: str) -> str:
    precision, recall, exact = (
        format_percent(attack_result.rows_by_score[name].value.mean)
        for name in ("null_precision", "null_recall", "null_exact")
    )
    sentences = (
        f"Of the classes that {make_printable(name)} claims to be absent, {precision} are "
        "absent. "
        f"It finds {recall} of all absent classes, and exactly the right set for {exact} of "
        f"{units}."
    )
    # Dai et al. (Decaf, arXiv 2405.15316), abstract: "100% accuracy" on absent classes.
    is_decaf = any(finding.cell.part == DECAF for finding in attack_result.findings)
    if is_decaf and attack_result.rows_by_score["null_exact"].value.mean < 1:
        return f"{sentences} The published accuracy is 100 %; this audit does not reproduce it."
    return sentences
