"""Settings of the attacker's prior knowledge of users."""

from dataclasses import dataclass
from typing import Annotated, Literal, final

from pydantic import Field

from overheard.core.errors import PlanError
from overheard.data.positive import Positive

PriorKind = Literal["random", "chronological", "chronological_within_labels", "profile"]


@final
@dataclass(frozen=True, slots=True)
class KnownUserSettings:
    """Settings of the attacker's prior knowledge of users.

    Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 5.2 and 6.1.

    Args:
        prior: how each user's examples are split into prior ones, which the attacker holds,
            and private ones, which clients hold.
            "random": at random.
            "chronological": the earlier ones are prior; without times, by order of the file.
            "chronological_within_labels": the earlier ones of each label are prior.
            "profile": at random, and the attacker pools all prior examples by label. It names
            label profiles in place of users. The profile of a client is the label that is most
            overrepresented in it compared with all clients.
        share: share of each user's records that is prior, 0..1 exclusive.
        records: the largest number of prior records per user; None = all. Chronological ones
            nearest to the private ones are taken, within labels in the same share per label.
        unseen: the number of clients whose users the attacker does not know.
        holdout: the number of users who take no part in the run. The attacker holds prior
            examples of them and knows that they take no part.
        shadow_devices: whether a shadow device takes part in the run for each user with prior
            examples, including holdout users, and trains on these examples.
        per_label: label-matched users: the number of private and of prior examples that each
            user has of every label. Labels and users with too few on either side are left
            out. None = not matched.

    """

    prior: PriorKind = "chronological"
    share: float = 0.5
    records: Positive | None = None
    unseen: Annotated[int, Field(ge=0)] = 0
    holdout: Annotated[int, Field(ge=0)] = 0
    shadow_devices: bool = False
    per_label: Positive | None = None

    def __post_init__(self) -> None:
        """Refuse settings out of range, and settings of users combined with profiles."""
        if not 0 < self.share < 1:
            raise PlanError(f"people: share must lie between 0 and 1, got {self.share}")
        if any(count is not None and count < 1 for count in (self.records, self.per_label)):
            raise PlanError("people: records and per_label must be 1 or more")
        if self.unseen < 0 or self.holdout < 0:
            raise PlanError("people: unseen and holdout must be 0 or more")
        has_user_settings = self.shadow_devices or self.unseen or self.holdout or self.per_label
        if self.prior == "profile" and has_user_settings:
            raise PlanError(
                "people: prior 'profile' does not name users: leave out shadow_devices, "
                "unseen, holdout and per_label"
            )
