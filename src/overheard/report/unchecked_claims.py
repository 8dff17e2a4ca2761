"""Sentences on what attacks claim if no ground truth is known."""

from overheard.drawing.claim_tables import UNCHECKED
from overheard.drawing.coverage import (
    LEVEL_TEXT,
    doubt_sentences,
    learning_curve_sentences,
)
from overheard.findings.names import make_printable, name_observers, name_other_clients
from overheard.findings.number_format import format_percent
from overheard.findings.threat_results import ThreatResult
from overheard.findings.unchecked_claims import (
    attacks_with_claims,
    count_guess_exclusions,
    select_claims,
)


def unchecked_claim_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe the claims of these observers, and state that they were not checked."""
    attacks = attacks_with_claims(threat_result)
    targets = {one.target for one in threat_result.unchecked_claims}
    whom = (
        name_other_clients(threat_result.observers)
        if threat_result.target_kind == "cohort"
        else "each client"
    )
    if threat_result.target_kind == "clients":
        whom = f"{len(targets)} client{'' if len(targets) == 1 else 's'}"
    observers = name_observers(threat_result.observers)
    what = make_printable(threat_result.question).replace("_", " ")
    rounds = len(threat_result.unchecked_claims[0].cell.rounds)
    return (
        f"{observers[0].upper()}{observers[1:]} makes claims about {whom} ({what}) from "
        f"{rounds} round{'' if rounds == 1 else 's'}. {UNCHECKED}: how accurate they are is "
        "unknown, which does not mean that there is no leak.",
        *exclusion_sentences(threat_result),
        f"Attacks: {', '.join(make_printable(threat_result.labels[one]) for one in attacks)}.",
    )


def exclusion_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """State how many intervals of each attack exclude an uninformed guess, and doubts."""
    return tuple(
        sentence
        for attack in attacks_with_claims(threat_result)
        for sentence in (
            *_interval_words(threat_result, attack),
            *doubt_sentences(select_claims(threat_result, attack)),
            *learning_curve_sentences(select_claims(threat_result, attack)),
        )
    )


def _interval_words(threat_result: ThreatResult, attack: str) -> tuple[str, ...]:
    """State how many of an attack's intervals exclude an uninformed guess."""
    excluded = count_guess_exclusions(select_claims(threat_result, attack))
    if excluded is None:
        return ()
    return (
        f"{format_percent(excluded.count / excluded.intervals)} of the {excluded.intervals} "
        "intervals "
        f"of {make_printable(threat_result.labels[attack])} (level {LEVEL_TEXT}) exclude the "
        "uninformed guess "
        f"({make_printable(excluded.guess)}); if the guess were true, about 10 % would.",
    )
