"""Who sent an update, by a perceptron that learns an attribute of the sender beside it."""

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
from overheard.linkage.attribute_labels import attribute_labels
from overheard.linkage.heads import fit_heads
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.prior_updates import MOST_ROUNDS, Source, known_updates, sent_updates
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.user_classes import classes_of


@final
@dataclass(frozen=True, slots=True)
class ReidentifyJointly(LearnsFromUpdates, Attack[Identity]):
    """The paper's re-identification model with a second softmax, which tells an attribute.

    One hidden layer of 128 ReLUs is shared, and both cross-entropies weigh alike (Fig. 3d,
    `linkage.heads`); the column "MTL, Deanon" of Table 4. Beside `reidentify_mlp` it tells
    whether to know an attribute of the known users helps to tell them apart.

    All else is as in `reidentify_mlp`: its settings, its class of the unseen, its sum over the
    rounds of a sender and its departures from the paper. Updates of users who take no part
    teach the attribute too, as far as it is known of them.

    Args:
        attribute: which; None = the only one that is known.
        updates: "shadow" devices of the run, as published, or "simulated" at each broadcast.
        layer: which part of an update is read.
        epochs: passes over the known updates.
        batch: updates a step.
        most_rounds: in which known users are trained.

    """

    attribute: str | None = None
    updates: Source = "simulated"
    layer: Layer = -1
    epochs: int = 60
    batch: int = 32
    most_rounds: int = MOST_ROUNDS

    name: ClassVar[str] = "reidentify_jointly"
    answers: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.3 and Table 4"
    )

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.epochs < 1 or self.batch < 1 or self.most_rounds < 1:
            raise ValueError(f"epochs, batch and most_rounds must be 1 or more, got {self}")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Rank the known users for every target.

        Raises:
            NeedsError: if no attribute of them is known, or updates cannot be had.

        """
        known = known_updates(
            view, knowledge, self.updates, self.layer, most_rounds=self.most_rounds
        )
        users = classes_of(known, self.name)
        told = attribute_labels(known, knowledge.people, self.attribute, "everyone")
        heads = fit_heads(
            normalize(known.vectors),
            [users.labels, told.labels],
            [users.count, len(told.values)],
            seed.child(self.name),
            epochs=self.epochs,
            batch=self.batch,
        )
        sent = sent_updates(view, targets, self.layer)
        of_users, _ = heads.log_probabilities(normalize(sent.vectors))
        claims = {}
        for target, rows in sent.rows().items():
            chances = of_users[rows].sum(0).log_softmax(0)  # (classes)
            unseen = float(chances[-1].exp()) if users.is_open else None
            claims[target] = users.identity(chances, unseen)
        return claims
