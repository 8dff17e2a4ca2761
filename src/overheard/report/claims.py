"""Tells in plain sentences what attacks claim where no truth is known."""

from overheard.drawing.claims import UNCHECKED
from overheard.drawing.coverage import LEVEL
from overheard.findings.exposures import Exposure
from overheard.findings.figures import percent
from overheard.findings.names import all_others, shown, together
from overheard.findings.unchecked import claiming, claims_of, left_out


def claim_words(exposure: Exposure) -> tuple[str, ...]:
    """What these observers claim, in a few sentences, and that nobody checked it."""
    attacks = claiming(exposure)
    targets = {one.target for one in exposure.claims}
    whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
    if exposure.about == "clients":
        whom = f"{len(targets)} client{'' if len(targets) == 1 else 's'}"
    who, what = together(exposure.observers), shown(exposure.question).replace("_", " ")
    rounds = len(exposure.claims[0].cell.rounds)
    return (
        f"{who[0].upper()}{who[1:]} makes claims about {whom} ({what}) from {rounds} "
        f"round{'' if rounds == 1 else 's'}. {UNCHECKED}: how right they are is not known, and "
        "not known is not the same as no leak.",
        *(sentence for attack in attacks for sentence in _outside(exposure, attack)),
        f"Attacks: {', '.join(shown(exposure.labels[one]) for one in attacks)}.",
    )


def _outside(exposure: Exposure, attack: str) -> tuple[str, ...]:
    """In how many intervals that an attack states a guess does not lie."""
    held = left_out(claims_of(exposure, attack))
    if held is None:
        return ()
    return (
        f"{percent(held.count / held.intervals)} of the {held.intervals} intervals of {LEVEL} "
        f"that {shown(exposure.labels[attack])} states leave out what one would guess "
        f"({shown(held.guess)}); were the guess true, it would be some 10 %.",
    )
