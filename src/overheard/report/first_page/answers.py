"""The first sentences of a report: what leaks to whom, and what is not known."""

from collections.abc import Iterator, Sequence

from overheard.findings.audit import Audit
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_other_clients,
    possessive,
)
from overheard.findings.number_format import SPACE
from overheard.findings.threat_results import ArmResult, ThreatResult, find_undefended_arm
from overheard.findings.threat_verdict import Verdict
from overheard.report.evidence.granted_knowledge import (
    attacker_knowledge,
    known_words,
    planned_threats,
)
from overheard.report.metadata_names import METADATA_NAMES
from overheard.report.page_registry import pages_of
from overheard.report.verdict_sentences import (
    guess_words,
    is_almost_exact,
    is_size_settled,
    learned_share,
)

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

NOT_SCORED = (
    "not measured: {}. Attacks ran, but what they claim could not be scored, which shows no "
    "protection"
)
"""What was not measured although attacks ran."""

ALMOST = (
    "not settled: {}. Attacks are almost right, but so few results cannot rule out chance. "
    "Plan as if it leaks"
)
"""What is nearly read, but was not shown to leak."""

NEW_NAMES = (
    "Attacks did not use the names of senders: they were tried as if each sender had a new "
    "name in each round."
)
"""What holds for a threat with pseudonyms that last for a round."""


def answer_sentences(audit: Audit) -> tuple[str, ...]:
    """Return what leaks to whom: first without defenses, then what leaks only under others.

    Before it comes what is sent in clear text and is itself an answer. Last comes what
    attackers were assumed to know, and what is read without any attack.
    """
    arm_results = audit.arm_results
    reference = reference_arm(arm_results)
    if reference is None:
        return ()
    others = [arm for arm in arm_results if arm is not reference]
    return (
        *_answer_sentences(reference),
        *_reference_sentences(_place(reference, arm_results), reference, others),
        *_examples(audit, reference),
        *(text for arm in others for text in _further_leaks(arm, reference)),
        *_conditions(audit, reference),
    )


def _answer_sentences(reference: ArmResult) -> Iterator[str]:
    """State that label shares are known to whoever reads a histogram of labels."""
    for one in reference.runs[0].in_clear:
        if one.kind == "labels":
            yield f"No attack is needed for label shares: {make_printable(one.text)}."


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
    titles: dict[str, list[str]] = {words: [] for words in OTHER_VERDICTS.values()}
    for result in reference.threat_results:
        if result.verdict != "leaks":
            titles.setdefault(_other_words(result), []).append(result.title)
    for words, found in titles.items():
        if found:
            yield f"{place}, {words.replace('{}', '; '.join(found))}."


def _other_words(result: ThreatResult) -> str:
    """Return what was found in place of a leak; `{}` stands for the titles."""
    withheld = make_printable(result.judgement.withheld)
    match result.verdict:
        case "unmeasured" if withheld:
            return f"not measured: {{}}. {withheld[:1].upper()}{withheld[1:]}"
        case "unmeasured" if result.attacks_run:
            return NOT_SCORED
        case _ if is_almost_exact(result):
            return ALMOST
        case "not enough to judge" if withheld:
            return f"not judged: {{}}. It must not be said that nothing leaks: {withheld}"
        case verdict:
            return OTHER_VERDICTS[verdict]


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
    guess = f" ({words})" if (words := guess_words(result, pages)) else ""
    size = _size_words(result)
    observers = name_observers(result.observers)
    return f"{observers} {pages.headline_statement(row, whose).success}{guess}.{size}"


def _size_words(leak: ThreatResult) -> str:
    """Return how much of what guessing leaves open the attack learns, of a leak."""
    if not is_size_settled(leak.judgement.least_gain):
        return " This may gain nothing on guessing."
    share = learned_share(leak)
    if share is None:
        return ""
    return f" Of what guessing leaves open, it learns {100 * share:.0f}{SPACE}%."


def _also_under(leak: ThreatResult, others: Sequence[ArmResult]) -> str:
    same = [
        (f"“{make_printable(arm.name)}”", is_size_settled(one.judgement.least_gain))
        for arm in others
        for one in arm.threat_results
        if one.title == leak.title and one.verdict == "leaks"
    ]
    settled = [name for name, is_settled in same if is_settled]
    unsure = [name for name, is_settled in same if not is_settled]
    text = f" It also leaks under {listed(settled)}." if settled else ""
    return text + (f" Under {listed(unsure)}, the size is unsure." if unsure else "")


def _examples(audit: Audit, reference: ArmResult) -> Iterator[str]:
    for result in reference.threat_results:
        if result.verdict == "unchecked":
            text = pages_of(result.question).unchecked_example(result, audit.class_names)
            if text:
                yield text
                return


def _conditions(audit: Audit, reference: ArmResult) -> Iterator[str]:
    known = attacker_knowledge(audit.plan)
    if known:
        granted = {
            frozenset(known_words(one.get("knows"))) for one in planned_threats(audit.plan)
        }
        part = ", some only a part of it" if len(granted) > 1 else ""
        yield f"The attackers were assumed to know{part}: {'; '.join(known)}."
    if any(one.get("pseudonyms") == "round" for one in planned_threats(audit.plan)):
        yield NEW_NAMES
    kinds = [
        make_printable(METADATA_NAMES.get(one.kind, one.kind))
        for one in reference.runs[0].in_clear
    ]
    if kinds:
        lowered = [f"{kind[:1].lower()}{kind[1:]}" for kind in kinds]
        yield f"Read without any attack, since it is sent in clear: {listed(lowered)}."


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
