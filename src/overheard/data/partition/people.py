"""What an attacker has of single users beforehand: how much, of what kind, of whom."""

from dataclasses import dataclass
from typing import Annotated, Literal, final

from pydantic import Field

from overheard.core.errors import PlanError
from overheard.data.positive import Positive

PriorKind = Literal["random", "chronological", "chronological_within_labels", "profile"]


@final
@dataclass(frozen=True, slots=True)
class People:
    """What an attacker has of single users beforehand.

    Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 5.2 and 6.1.

    Args:
        prior: how a user's examples are parted into prior ones, which the attacker has, and
            private ones. "random": by chance; "chronological": the earlier ones are prior, and
            where the data tell no time the order of the file stands for it;
            "chronological_within_labels": the earlier ones of each label; "profile": parted by
            chance, and the attacker sorts all prior examples by label: whom it may name are
            no users but one profile a label, and a client stands for the one that it has most
            of beside the others.
        share: of each user's records that is prior, 0..1 exclusive.
        records: prior records a user at most: of chronological ones those nearest to the
            private ones, of each label a like share where they go by label; None = all.
        unseen: so many of the clients are users of whom the attacker has nothing.
        holdout: so many users take no part, and the attacker knows that.
        shadow_devices: whether the attacker lets each prior that it has take part in the run
            as a device of its own, those of holdout users too.
        per_label: label-matched users: each has as many private and as many prior examples of
            every label as this, whatever the kind of prior; labels and users that have not
            enough on both sides are left out. None = as they are.

    """

    prior: PriorKind = "chronological"
    share: float = 0.5
    records: Positive | None = None
    unseen: Annotated[int, Field(ge=0)] = 0
    holdout: Annotated[int, Field(ge=0)] = 0
    shadow_devices: bool = False
    per_label: Positive | None = None

    def __post_init__(self) -> None:
        """Refuse a prior of everything or of nothing, and profiles that are to be users."""
        if not 0 < self.share < 1:
            raise PlanError(f"people: share lies between 0 and 1, got {self.share}")
        if any(count is not None and count < 1 for count in (self.records, self.per_label)):
            raise PlanError("people: records and per_label must be 1 or more")
        if self.unseen < 0 or self.holdout < 0:
            raise PlanError("people: unseen and holdout must be 0 or more")
        of_users = self.shadow_devices or self.unseen or self.holdout or self.per_label
        if self.prior == "profile" and of_users:
            raise PlanError(
                "people: a profile is no user: leave out shadow_devices, unseen, holdout and "
                "per_label"
            )
