"""The first sentences of a report: what leaks to whom, and what is not known."""

from collections.abc import Iterator, Sequence

from overheard.findings.names import make_printable, name_other_clients, possessive
from overheard.findings.threat_results import ArmResult, ThreatResult, find_undefended_arm
from overheard.findings.threat_verdict import Verdict
from overheard.report.page_registry import pages_of
from overheard.report.verdict_sentences import guess_words, is_size_settled

OTHER_VERDICTS: dict[Verdict, str] = {
    "inconclusive": "not settled: {}. Neither a leak nor its absence was shown",
    "not enough to judge": "not settled: {}. There is too little to judge by",
    "no leak above margin": "no leak that matters was found: {}",
    "nothing to read": "hardly anything could leak: {}. A guess is almost right already",
    "unmeasured": "not measured: {}. No attack could run, which shows no protection",
    "unchecked": "attacks state something, but nobody could check whether it is right: {}. "
    "This shows neither a leak nor its absence. Until it is checked, plan as if it were right",
}
"""What was not found to leak, by verdict; `{}` stands for the titles."""


def answer_sentences(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """Return what leaks to whom: first without defenses, then what leaks only under others."""
    reference = reference_arm(arm_results)
    if reference is None:
        return ()
    others = [arm for arm in arm_results if arm is not reference]
    return (
        *_reference_sentences(_place(reference, arm_results), reference, others),
        *(text for arm in others for text in _further_leaks(arm, reference)),
    )


def reference_arm(arm_results: Sequence[ArmResult]) -> ArmResult | None:
    """Return the arm that the others are compared with: without defenses, else the first."""
    return find_undefended_arm(arm_results) or (arm_results[0] if arm_results else None)


def listed(names: Sequence[str]) -> str:
    """Return names as an enumeration.

    >>> listed(["noise", "dropout", "local DP"])
    'noise, dropout and local DP'
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _reference_sentences(
    place: str, reference: ArmResult, others: Sequence[ArmResult]
) -> Iterator[str]:
    for result in reference.threat_results:
        if result.verdict == "leaks":
            yield f"{place}: {_leak_sentence(result)}{_also_under(result, others)}"
    for verdict, words in OTHER_VERDICTS.items():
        titles = [one.title for one in reference.threat_results if one.verdict == verdict]
        if titles:
            yield f"{place}, {words.format('; '.join(titles))}."


def _place(reference: ArmResult, arm_results: Sequence[ArmResult]) -> str:
    if reference.is_undefended and reference.runs[0].are_defenses_known:
        return "Without defenses"
    if len(arm_results) == 1:
        return "In this run"
    return f"Under “{make_printable(reference.name)}”"


def _leak_sentence(result: ThreatResult) -> str:
    row = result.attack_results[0].headline_row
    pages = pages_of(result.question)
    whose = (
        "each client's"
        if result.target_kind == "clients"
        else possessive(name_other_clients(result.observers))
    )
    observers, _ = result.title.split(",", 1)
    guess = f" ({words})" if (words := guess_words(result, pages)) else ""
    size = (
        ""
        if is_size_settled(result.judgement.least_gain)
        else " This may gain nothing on a guess."
    )
    lowered = f"{observers[:1].lower()}{observers[1:]}"
    return f"{lowered} {pages.headline_statement(row, whose).success}{guess}.{size}"


def _also_under(leak: ThreatResult, others: Sequence[ArmResult]) -> str:
    names = [
        f"“{make_printable(arm.name)}”"
        for arm in others
        for one in arm.threat_results
        if one.title == leak.title and one.verdict == "leaks"
    ]
    return f" It also leaks under {listed(names)}." if names else ""


def _further_leaks(arm: ArmResult, reference: ArmResult) -> Iterator[str]:
    """State what leaks under an arm, but was not found to leak in the one to compare with."""
    known = {one.title for one in reference.threat_results if one.verdict == "leaks"}
    new = [
        one for one in arm.threat_results if one.verdict == "leaks" and one.title not in known
    ]
    for is_settled, words in ((True, "leaks"), (False, "signs of a leak of unsure size")):
        titles = [
            one.title for one in new if is_size_settled(one.judgement.least_gain) == is_settled
        ]
        if titles:
            yield f"Under “{make_printable(arm.name)}” only, {words}: {'; '.join(titles)}."
