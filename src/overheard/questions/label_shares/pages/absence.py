"""Sentences on how well attacks identify classes that a target does not hold."""

from overheard.findings.exposures import Case, Exposure
from overheard.findings.figures import percent
from overheard.findings.names import shown, told_apart

ABSENCE = frozenset({"null_precision", "null_recall", "null_exact"})
"""Scores of attacks that claim which classes a target does not hold."""

DECAF = "decaf"


def absence_words(exposure: Exposure) -> tuple[str, ...]:
    """Describe how well each attack that claims absence does; compare with published claims."""
    claiming = [case for case in exposure.cases if case.whole.keys() >= ABSENCE]
    units = "runs" if exposure.about == "cohort" else "clients"
    names = told_apart([case.label for case in exposure.cases])
    return tuple(_naming(case, names[case.label], units) for case in claiming)


def _naming(case: Case, name: str, units: str) -> str:
    precision, recall, exact = (
        percent(case.whole[name].value.mean)
        for name in ("null_precision", "null_recall", "null_exact")
    )
    sentences = (
        f"Of the classes that {shown(name)} claims to be absent, {precision} are absent. "
        f"It finds {recall} of all absent classes, and exactly the right set for {exact} of "
        f"{units}."
    )
    # Dai et al. (Decaf, arXiv 2405.15316), abstract: "100% accuracy" on absent classes.
    is_decaf = any(finding.cell.part == DECAF for finding in case.findings)
    if is_decaf and case.whole["null_exact"].value.mean < 1:
        return f"{sentences} The published accuracy of 100 % is not reproduced here."
    return sentences
