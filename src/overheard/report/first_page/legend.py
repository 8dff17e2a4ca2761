"""What the words of the matrix of verdicts mean, as far as this report uses them."""

from collections.abc import Iterable, Iterator, Sequence

from overheard.core.parties import NETWORK, RELEASE, SERVER, Party, is_client, joining_round
from overheard.findings.names import name_observers
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.report.page_registry import pages_of
from overheard.report.verdict_sentences import is_size_settled

NAMES_MARGIN = ("inconclusive", "no leak above margin", "nothing to read")
"""Verdicts beside which the matrix names the margin."""


def legend_sentences(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """Return a sentence on each word that the matrix of these arms uses."""
    results = [one for arm in arm_results for one in arm.threat_results]
    return (*_words_on_arms(arm_results, results), *_words_on_verdicts(results))


def _words_on_arms(
    arm_results: Sequence[ArmResult], results: Sequence[ThreatResult]
) -> Iterator[str]:
    if len(arm_results) > 1:
        yield "Each column is an arm: a variant of the federation with its own defenses."
    if any(one.target_kind == "cohort" for one in results):
        yield "The cohort is all clients together."
    insiders = dict.fromkeys(
        one.observers for one in results if one.observers and SERVER not in one.observers
    )
    yield from _words_on_external(
        dict.fromkeys(one for row in results for one in row.observers)
    )
    for observers in insiders:
        clients = tuple(filter(is_client, observers))
        if not clients:
            continue
        name = name_observers(clients)
        yield (
            f"{name[0].upper()}{name[1:]} takes part like the others. It is an example of one "
            "that tries to learn about them from what it receives."
        )


def _words_on_external(observers: Iterable[Party]) -> Iterator[str]:
    """Yield what each of these observers has that is no party of the run."""
    for one in observers:
        if one == RELEASE:
            yield "A reader of the final model has that model and nothing else of the run."
        elif one == NETWORK:
            yield (
                "The network sees who sends how many bytes to whom and when. The messages are "
                "encrypted, so it reads none."
            )
        elif (joined := joining_round(one)) is not None:
            yield (
                f"A client that joins in round {joined} reads the models from that round on "
                "and sends nothing."
            )


def _words_on_verdicts(results: Sequence[ThreatResult]) -> Iterator[str]:
    measured = [one for one in results if one.attack_results]
    leaks = [one for one in measured if one.verdict == "leaks"]
    if measured:
        yield (
            "Each field has the verdict, the result of the best attack on average, and that of "
            "guessing. Guessing never sees the run. At most it knows what such data look like "
            "in general. The gain is the difference."
        )
    for question in dict.fromkeys(one.question for one in measured):
        if intro := pages_of(question).intro():
            yield intro
    if leaks:
        yield (
            "“Leaks”: what the attack states depends on the data more than by chance, and was "
            "better than guessing. “By chance” says in how many of 1,000 audits this would "
            "come up if nothing leaked."
        )
    small = [one for one in leaks if one.judgement.is_below_margin]
    others = [one for one in leaks if not one.judgement.is_below_margin]
    if any(not is_size_settled(one.judgement.least_gain) for one in others):
        yield "“Size unsure”: in further audits the attack may be no better than guessing."
    if small or any(one.verdict in NAMES_MARGIN for one in measured):
        yield "The margin is the smallest gain that the plan takes seriously."
    if any(one.shared_gain for one in measured):
        yield (
            "“Guessing from labels alone” knows which labels are more frequent among training "
            "records, and nothing else."
        )
