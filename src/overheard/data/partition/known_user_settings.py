"""Settings of the attacker's prior knowledge of users."""

from dataclasses import dataclass
from typing import Annotated, Literal, final

from annotated_types import Gt, Lt

from overheard.core.errors import PlanError
from overheard.core.settings import NotNegative, Positive, Settings

PriorKind = Literal["random", "chronological", "chronological_within_labels", "profile"]


@final
@dataclass(frozen=True, slots=True)
class KnownUserSettings(Settings):
    """Settings of the attacker's prior knowledge of users.

    Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 5.2 and 6.1.

    Args:
        prior: how each user's examples are split into prior ones, which the attacker holds,
            and private ones, which clients hold.
            "random": at random.
            "chronological": the earlier ones are prior; without times, at random, since the
            order of a file may be that of anything, such as of labels.
            "chronological_within_labels": the earlier ones of each label are prior, as many as
            in a random split.
            "profile": at random, and the attacker pools all prior examples by label. It names
            label profiles in place of users. The profile of a client is the label that is most
            overrepresented in it compared with all clients.
        share: share of each user's records that is prior, 0..1 exclusive. Nobody holds a random
            share of the prior ones and of the private ones, up to 0.3 and drawn by user, so
            that the number of one does not tell that of the other.
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
    share: Annotated[float, Gt(0), Lt(1)] = 0.5
    records: Positive | None = None
    unseen: NotNegative = 0
    holdout: NotNegative = 0
    shadow_devices: bool = False
    per_label: Positive | None = None

    def check_together(self) -> None:
        """Refuse settings of users combined with profiles."""
        has_user_settings = self.shadow_devices or self.unseen or self.holdout or self.per_label
        if self.prior == "profile" and has_user_settings:
            raise PlanError(
                "people: prior 'profile' does not name users: leave out shadow_devices, "
                "unseen, holdout and per_label"
            )
