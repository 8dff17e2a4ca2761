"""A network that was trained on updates of known users tells who sent another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch.nn.functional import normalize

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.heads import fit_heads
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.prior_updates import MOST_ROUNDS, Source, known_updates, sent_updates
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.user_classes import classes_of


@final
@dataclass(frozen=True, slots=True)
class ReidentifyMlp(LearnsFromUpdates, Attack[Identity]):
    """One hidden layer of 128 ReLUs from an update to a softmax over the known users.

    It is trained on the updates of known users of all rounds together; one layer of an update,
    scaled to length 1, is its input. Where there are holdout users, they make one more class:
    a sender whom the attacker does not know (the open world of section 6.1.2), and `unseen` is
    the chance of that class.

    The scores of a sender with one update are the logarithms of the softmax. With several,
    logarithms are summed and normalised, as if its updates erred independently (naive Bayes):
    the paper judges every update by itself and has no such rule. They do not err
    independently, so the chance of the unseen is too sure then.

    Differs from the paper: how many epochs, and in which batches, it does not tell; here 100,
    and Keras' 32. At this rate a weak signal takes long: on 1,200 planted updates of 50 users
    top-1 was .32 after 30 epochs, .57 after 60, .80 after 100 and .82 after 200. A layer of
    more than 8,192 numbers is sketched (`linkage.sketch`). Of simulated updates, 24 rounds are
    learned from at most.

    Whoever trains known users behind a defense that draws something once a client, such as the
    mode of `mm_aug`, sees it draw once for each of them: one draw a user looks like a mark of
    the user. Several pieces of a prior are several clients, with a draw each.

    Args:
        updates: where labelled updates come from: "shadow" as published.
        layer: which part of an update is read.
        epochs: passes over the known updates.
        batch: updates a step.
        most_rounds: in which known users are trained.
        pieces: into which the prior of each is cut then, every one a client of its own; 1 as
            published. Shadow devices hold their priors whole.

    """

    updates: Source = "simulated"
    layer: Layer = -1
    epochs: int = 100
    batch: int = 32
    most_rounds: int = MOST_ROUNDS
    pieces: int = 1

    name: ClassVar[str] = "reidentify_mlp"
    answers: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1, eq. 5"
    )

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if min(self.epochs, self.batch, self.most_rounds, self.pieces) < 1:
            raise ValueError(
                f"epochs, batch, most_rounds and pieces must be 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim what the network tells of each target.

        Raises:
            NeedsError: if updates of known users cannot be had.

        """
        known = known_updates(
            view, knowledge, self.updates, self.layer, self.pieces, self.most_rounds
        )
        classes = classes_of(known, self.name)
        heads = fit_heads(
            normalize(known.vectors),
            [classes.labels],
            [classes.count],
            seed.child(self.name),
            epochs=self.epochs,
            batch=self.batch,
        )
        sent = sent_updates(view, targets, self.layer)
        (told,) = heads.log_probabilities(normalize(sent.vectors))
        claims = {}
        for target, rows in sent.rows().items():
            chances = told[rows].sum(0).log_softmax(0)  # (classes)
            unseen = float(chances[-1].exp()) if classes.is_open else None
            claims[target] = classes.identity(chances, unseen)
        return claims
