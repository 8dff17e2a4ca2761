"""How near updates of different rounds lie tells whether they are of one sender: ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.crowd_places import crowd_places, layers_in
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.prior_updates import Source, known_updates
from overheard.linkage.user_evidence import learn_evidence
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.estimators.heard_apart import same_sender


@final
@dataclass(frozen=True, slots=True)
class LinkWccn(LearnsFromUpdates, Attack[SameSender]):
    """The nearness of two pseudonyms in the spaces of `reidentify_wccn`.

    Spaces and weights come from known users, and neither sender need be one of them. Each
    target is compared with all others but those of its own rounds, as nobody answers twice in
    one; the score of two is the mean nearness of their updates, -1..1. As with `link_siamese`,
    who keeps the same examples sends alike, whoever it is: a control in which examples were
    exchanged among clients does not bring it down to chance.

    Args:
        updates: where labelled updates come from.
        layers: which parts of an update are read, each by itself; None = the last layer's bias,
            where it has one, that layer, and all of them.
        pieces: into which a prior is cut, where users are trained; at least 2.
        most_rounds: in which known users are trained.

    """

    updates: Source = "simulated"
    layers: tuple[Layer, ...] | None = None
    pieces: int = 4
    most_rounds: int = 6

    name: ClassVar[str] = "link_wccn"
    answers: ClassVar = SameSender
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = "ours; see reidentify_wccn"

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        if self.layers is not None and not 0 < len(set(self.layers)) == len(self.layers):
            raise ValueError(f"layers are different, one or more, got {self.layers}")
        if self.pieces < 2 or self.most_rounds < 1:
            raise ValueError(f"pieces are 2 or more and most_rounds 1 or more, got {self}")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, SameSender]:
        """Claim how near each target lies to all others.

        Raises:
            NeedsError: if updates of known users cannot be had, or nobody was heard in other
                rounds alone.

        """
        known = {
            layer: known_updates(
                view, knowledge, self.updates, layer, self.pieces, self.most_rounds
            )
            for layer in self.layers or layers_in(view)
        }
        evidence = learn_evidence(known)
        heard = crowd_places(view, knowledge.people.devices, evidence)
        near = evidence.nearness(heard.places)
        crowd, senders, rounds = tuple(heard.numbers), heard.senders, heard.rounds
        return {
            target: same_sender(self.name, crowd, senders, rounds, mine, near[mine].float())
            for target in targets
            for mine in ((senders == heard.number(target)).nonzero().flatten(),)
        }
