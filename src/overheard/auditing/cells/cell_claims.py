"""What an attack leaves of one cell: its claims, and why there is none about some targets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from overheard.core.claims import Claim
from overheard.core.parties import Party
from overheard.findings.finding import Cell
from overheard.findings.refusal_kind import RefusalKind


@final
@dataclass(frozen=True, slots=True)
class TargetClaim:
    """A claim, with what a reader compares it with.

    Args:
        claim: the claim.
        guesses: the uninformed guesses by name, the standard one first. They follow from the
            attacker's knowledge and from what the claim is about.
        sent_rounds: the observed rounds in which the target sent an update, or one of several.
        targets: whom a joint claim is about; () = the one target that it is stored under.

    """

    claim: Claim
    guesses: Mapping[str, Claim]
    sent_rounds: tuple[int, ...]
    targets: tuple[Party, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class CellClaims:
    """What an attack claims in one cell. Nothing of it depends on the ground truth.

    Args:
        cell: the cell.
        claims: by target, the claim about it; a joint claim is under `COHORT`.
        refusals: by target without a claim, what was missing.
        code: the digest of the code that made the claims; "" = not known.
        kinds: by target without a claim, the kind of its refusal, unless something was missing.
            Such a refusal is never stored.

    """

    cell: Cell
    claims: Mapping[Party, TargetClaim]
    refusals: Mapping[Party, tuple[str, ...]]
    code: str = ""
    kinds: Mapping[Party, RefusalKind] = field(default_factory=dict)
