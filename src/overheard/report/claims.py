"""Sentences on what attacks claim if no ground truth is known."""

from overheard.drawing.claims import UNCHECKED
from overheard.drawing.coverage import LEVEL
from overheard.findings.exposures import Exposure
from overheard.findings.figures import percent
from overheard.findings.names import all_others, shown, together
from overheard.findings.unchecked import claiming, claims_of, left_out


def claim_words(exposure: Exposure) -> tuple[str, ...]:
    """Describe the claims of these observers, and state that they were not checked."""
    attacks = claiming(exposure)
    targets = {one.target for one in exposure.claims}
    whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
    if exposure.about == "clients":
        whom = f"{len(targets)} client{'' if len(targets) == 1 else 's'}"
    observers = together(exposure.observers)
    what = shown(exposure.question).replace("_", " ")
    rounds = len(exposure.claims[0].cell.rounds)
    return (
        f"{observers[0].upper()}{observers[1:]} makes claims about {whom} ({what}) from "
        f"{rounds} round{'' if rounds == 1 else 's'}. {UNCHECKED}: how accurate they are is "
        "unknown, which does not mean that there is no leak.",
        *(sentence for attack in attacks for sentence in _outside(exposure, attack)),
        f"Attacks: {', '.join(shown(exposure.labels[one]) for one in attacks)}.",
    )


def _outside(exposure: Exposure, attack: str) -> tuple[str, ...]:
    """State how many of an attack's intervals exclude an uninformed guess."""
    excluded = left_out(claims_of(exposure, attack))
    if excluded is None:
        return ()
    return (
        f"{percent(excluded.count / excluded.intervals)} of the {excluded.intervals} intervals "
        f"of {shown(exposure.labels[attack])} (level {LEVEL}) exclude the uninformed guess "
        f"({shown(excluded.guess)}); if the guess were true, about 10 % would.",
    )
