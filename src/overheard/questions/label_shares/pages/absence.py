"""Tells how well attacks name the classes of which a target holds nothing."""

from overheard.findings.exposures import Case, Exposure
from overheard.findings.figures import percent
from overheard.findings.names import shown, told_apart

ABSENCE = frozenset({"null_precision", "null_recall", "null_exact"})
"""Scores of an attack that says which classes a target does not hold."""

DECAF = "decaf"


def absence_words(exposure: Exposure) -> tuple[str, ...]:
    """How well each attack that names absent classes does so; the published claim beside it."""
    naming = [case for case in exposure.cases if case.whole.keys() >= ABSENCE]
    units = "runs" if exposure.about == "cohort" else "clients"
    names = told_apart([case.label for case in exposure.cases])
    return tuple(_naming(case, names[case.label], units) for case in naming)


def _naming(case: Case, name: str, units: str) -> str:
    precision, recall, exact = (
        percent(case.whole[name].value.mean)
        for name in ("null_precision", "null_recall", "null_exact")
    )
    sentence = (
        f"Of the classes that {shown(name)} names as absent, {precision} are; it finds "
        f"{recall} of the absent ones, and has them exactly right for {exact} of {units}"
    )
    # Dai et al. (Decaf, arXiv 2405.15316), abstract: "100% accuracy" on absent classes.
    is_decaf = any(finding.cell.part == DECAF for finding in case.findings)
    if is_decaf and case.whole["null_exact"].value.mean < 1:
        return f"{sentence}: the published 100 % does not hold here."
    return f"{sentence}."
