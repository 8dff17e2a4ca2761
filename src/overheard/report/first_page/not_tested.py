"""What an audit did not ask and did not test."""

from collections.abc import Sequence

from overheard.core.parties import NETWORK, RELEASE, SERVER, Party, is_client
from overheard.findings.audit import Audit
from overheard.findings.finding import Refusal
from overheard.findings.names import make_printable, name_observers
from overheard.findings.threat_results import ArmResult
from overheard.plans.registries import questions
from overheard.report.evidence.standards import untested_threats
from overheard.report.page_registry import pages_of
from overheard.report.refusals import why_refused


def untested_sentences(audit: Audit) -> tuple[str, ...]:
    """Return questions and observers that were not asked, refused attacks, and limits."""
    return (
        *map(make_printable, audit.data_warnings),
        *_unasked(audit.arm_results),
        *_unasked_observers(audit.arm_results),
        *_one_sided(audit.arm_results),
        *_refused(audit.arm_results),
        f"Overheard cannot test: {'; '.join(_never_tested())}.",
        *_auxiliary_caveat(audit),
    )


def _never_tested() -> tuple[str, ...]:
    return tuple(_lower_first(one.threat) for one in untested_threats())


def _unasked(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    asked = {one.question for arm in arm_results for one in arm.threat_results}
    missing = [
        _lower_first(pages_of(name).plain_question)
        for name in questions()
        if name not in asked and pages_of(name).plain_question
    ]
    return (f"Questions not asked: {'; '.join(missing)}.",) if missing else ()


def _unasked_observers(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    asked = {one.observers for arm in arm_results for one in arm.threat_results}
    missing = []
    if (SERVER,) not in asked:
        missing.append("the server")
    if not any(_takes_part(observers) for observers in asked):
        missing.append("a client that takes part")
    if not any(len(observers) > 1 for observers in asked):
        missing.append("parties that share what they see")
    if not any(RELEASE in observers for observers in asked):
        missing.append("readers of the final model")
    if not any(NETWORK in observers for observers in asked):
        missing.append("the network")
    return (f"Observers not asked about: {', '.join(missing)}.",) if missing else ()


def _takes_part(observers: Sequence[Party]) -> bool:
    """Return whether clients observe, without the server."""
    return SERVER not in observers and any(map(is_client, observers))


def _one_sided(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """State which questions were asked about the server alone, or about clients alone."""
    asked: dict[bool, set[str]] = {True: set(), False: set()}
    for arm in arm_results:
        for one in arm.threat_results:
            if SERVER in one.observers or _takes_part(one.observers):
                asked[SERVER in one.observers].add(one.question)
    if not all(asked.values()):
        return ()
    return tuple(
        f"Asked about {who} only: {'; '.join(map(_in_words, sorted(alone)))}."
        for who, alone in (
            ("the server", asked[True] - asked[False]),
            ("clients that take part", asked[False] - asked[True]),
        )
        if alone
    )


def _in_words(question: str) -> str:
    words = _lower_first(pages_of(question).plain_question)
    return words or make_printable(question).replace("_", " ")


def _refused(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """State which arms and observers had attacks that could not run, and what was missing."""
    places: dict[str, list[Refusal]] = {}
    for arm in arm_results:
        for one in arm.threat_results:
            place = f"{name_observers(one.observers)} under “{make_printable(arm.name)}”"
            places.setdefault(place, []).extend(one.refusals)
    by_reason: dict[str, list[str]] = {}
    for place, refusals in places.items():
        if refusals:
            why = why_refused(refusals, "What was missing")
            by_reason.setdefault(why, []).append(place)
    return tuple(
        f"Some attacks could not run: by {'; by '.join(found)}. {why} This does not show "
        "protection."
        for why, found in by_reason.items()
    )


def _auxiliary_caveat(audit: Audit) -> tuple[str, ...]:
    if audit.is_auxiliary_separate:
        return ()
    return (
        "Attackers were given examples of their own from the plan's data. If some of these are "
        "a client's own examples, the attacks look stronger than they are: Overheard cannot "
        "check this for a recording.",
    )


def _lower_first(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"
