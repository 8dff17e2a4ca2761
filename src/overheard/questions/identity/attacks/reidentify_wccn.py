"""Known users as points in spaces where one user's updates are near each other: ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.crowd_places import crowd_places, layers_in
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.linked import linked
from overheard.linkage.prior_updates import Source, known_updates
from overheard.linkage.user_evidence import learn_evidence
from overheard.linkage.user_space import mean_by
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.one_each import one_each
from overheard.questions.identity.estimators.user_classes import UNHEARD, classes_of

ROUNDS = 6
"""In which known users are trained: of more rounds the same data were read, at more cost."""


@final
@dataclass(frozen=True, slots=True)
class ReidentifyWccn(LearnsFromUpdates, Attack[Identity]):
    """Known users as points, and how near to each of them an update lies.

    1. Each prior is cut into pieces in the order of time, each of which is trained at some
       broadcasts as a client of its own. What the pieces of one user differ by is what its
       private data may differ by from its prior.
    2. An update is scaled to length 1, less the mean of its round, and turned so that the
       pieces of one user differ alike in all directions (`linkage.user_space`); the cosine with
       each user is evidence. Several layers are read so.
    3. Weights of the cosines are learned on the prior alone: from halves of the pieces the
       other halves are told apart (`linkage.user_evidence`). They turn cosines into chances.
    4. Updates of pseudonyms that last a round are linked first, where they lie so near that
       they are of the same data; those of one sender are taken together.
    5. Nobody answers twice in a round, nor under two names that last: chances are made to fit
       that (`estimators.one_each`). `unseen` is calibrated on users left out, and on holdout
       users.

    It misleads where private data differ from the prior in ways in which pieces of the prior do
    not differ. So it does with shadow devices, each of which holds the same data in all rounds:
    `unseen` is then too high, the more the fainter users differ. `unseen` takes seen and unseen
    users to be equally likely beforehand (`linkage.stranger`).

    Args:
        updates: where labelled updates come from.
        layers: which parts of an update are read, each by itself; None = the last layer's bias,
            where it has one, that layer, and all of them.
        pieces: into which a prior is cut, where users are trained; at least 2.
        most_rounds: in which known users are trained.
        link: whether updates of short-lived pseudonyms are linked.
        at_most_one: whether nobody is taken to stand behind two senders.

    """

    updates: Source = "simulated"
    layers: tuple[Layer, ...] | None = None
    pieces: int = 4
    most_rounds: int = ROUNDS
    link: bool = True
    at_most_one: bool = True

    name: ClassVar[str] = "reidentify_wccn"
    answers: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "ours; within-class covariance normalisation: Hatch, Kajarekar and Stolcke 2006; "
        "cosine scoring: Dehak et al. 2011; the threat: Orekondy et al. 2018 (arXiv 1805.05838)"
    )

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.layers is not None and not 0 < len(set(self.layers)) == len(self.layers):
            raise ValueError(f"layers are different, one or more, got {self.layers}")
        if self.pieces < 2 or self.most_rounds < 1:
            raise ValueError(f"pieces are 2 or more and most_rounds 1 or more, got {self}")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the chances of each known user for each target.

        Raises:
            NeedsError: if updates of known users cannot be had.

        """
        known = {
            layer: known_updates(
                view, knowledge, self.updates, layer, self.pieces, self.most_rounds
            )
            for layer in self.layers or layers_in(view)
        }
        classes = classes_of(next(iter(known.values())), self.name)
        evidence = learn_evidence(known)
        heard = crowd_places(view, knowledge.people.devices, evidence)
        senders, rounds, count = heard.senders, heard.rounds, len(heard.numbers)
        lasts = len(senders) > count
        together = senders
        if self.link and not lasts:
            together = linked(evidence.nearness(heard.places), rounds, evidence.least)
        groups = int(together.max()) + 1
        means = [mean_by(own, together, groups) for own in heard.places]
        scores = evidence.scores(means, together.bincount(minlength=groups))
        scores = scores[:, evidence.heard][_first_of(together, senders, count)]
        strange = evidence.stranger.chances(scores)
        chances = scores.log_softmax(1)
        if self.at_most_one:
            chances = _one_each(chances, senders, rounds, lasts)
        numbers = {target: heard.number(target) for target in targets}
        return {
            target: classes.identity(
                chances[number].clamp(min=UNHEARD).float(),
                float(strange[number]),
            )
            for target, number in numbers.items()
        }


def _first_of(
    together: Int[Tensor, " updates"], senders: Int[Tensor, " updates"], count: int
) -> Int[Tensor, " senders"]:
    """With whom each sender was taken together."""
    found = torch.zeros(count, dtype=torch.long)
    found[senders] = together
    return found


def _one_each(
    chances: Float[Tensor, "senders users"],
    senders: Int[Tensor, " updates"],
    rounds: Int[Tensor, " updates"],
    lasts: bool,
) -> Float[Tensor, "senders users"]:
    """Let no user stand behind two senders who are two: of one round, or of names that last."""
    if lasts:
        return one_each(chances)
    fitted = chances.clone()
    for number in sorted(set(rounds.tolist())):
        those = senders[rounds == number]
        fitted[those] = one_each(chances[those])
    return fitted
