"""Re-identification by a perceptron that also predicts an attribute of the sender."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.attribute_labels import read_attribute_labels
from overheard.linkage.known_updates import MAX_ROUNDS, UpdateSource
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.multi_head_mlp import fit_multi_head_mlp
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.unit_updates import (
    Layers,
    check_layers,
    load_unit_updates,
    read_unit_updates,
)
from overheard.questions.identity.estimators.user_classes import build_user_classes


@final
@dataclass(frozen=True, slots=True)
class ReidentifyJointly(LearnsFromUpdates, Attack[Identity]):
    """The paper's re-identification model with a second softmax for an attribute.

    Both outputs share one hidden layer of 128 ReLUs, and both cross-entropies have equal weight
    (Fig. 3d, `linkage.multi_head_mlp`); the column "MTL, Deanon" of Table 4. Compared with
    `reidentify_mlp`, it shows whether a known attribute of the users helps re-identification.

    Everything else is as in `reidentify_mlp`: the settings, the class of unknown users, the sum
    over the rounds of a sender and the differences from the paper. Updates of users who do not
    take part also train the attribute output if their attribute is known.

    Args:
        attribute: its name; None = the only known attribute.
        updates: "shadow" devices of the run, as published, or "simulated" at each broadcast.
        layer: the part of an update that is read; several parts are each scaled to length 1
            and read together.
        epochs: passes over the known updates.
        batch: updates per step.
        most_rounds: maximum number of rounds in which known users are trained.
        pieces: number of chunks of each simulated prior, each a separate client; 1 as
            published. Shadow devices hold their whole priors.

    """

    attribute: str | None = None
    updates: UpdateSource = "simulated"
    layer: Layers = -1
    epochs: int = 60
    batch: int = 32
    most_rounds: int = MAX_ROUNDS
    pieces: int = 1

    name: ClassVar[str] = "reidentify_jointly"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.3 and Table 4"
    )

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        check_layers(self.layer)
        if min(self.epochs, self.batch, self.most_rounds, self.pieces) < 1:
            raise ValueError(
                f"epochs, batch, most_rounds and pieces must be 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Rank the known users for every target.

        Raises:
            NeedsError: if no attribute of the users is known, or updates are unavailable.

        """
        known = load_unit_updates(
            view, knowledge, self.updates, self.layer, self.pieces, self.most_rounds
        )
        users = build_user_classes(known, self.name)
        attribute = read_attribute_labels(
            known, knowledge.known_users, self.attribute, "everyone"
        )
        heads = fit_multi_head_mlp(
            known.vectors,
            [users.labels, attribute.labels],
            [users.count, len(attribute.values)],
            seed.child(self.name),
            epochs=self.epochs,
            batch=self.batch,
        )
        sent = read_unit_updates(view, targets, self.layer)
        user_log_probabilities, _ = heads.log_probabilities(sent.vectors)
        claims = {}
        for target, rows in sent.rows_by_sender().items():
            scores = user_log_probabilities[rows].sum(0).log_softmax(0)  # (classes)
            unseen = float(scores[-1].exp()) if users.has_unknown_class else None
            claims[target] = users.build_claim(scores, unseen)
        return claims
