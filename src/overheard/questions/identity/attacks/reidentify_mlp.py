"""Re-identification by a network trained on updates of known users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
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
class ReidentifyMlp(LearnsFromUpdates, Attack[Identity]):
    """One hidden layer of 128 ReLUs from an update to a softmax over the known users.

    It is trained on the updates of known users of all rounds together. Its input is one layer
    of an update, scaled to length 1. Holdout users, if any, form one more class: a sender
    unknown to the attacker (the open world of section 6.1.2). `unseen` is the probability of
    that class.

    The scores of a sender with one update are the logarithms of the softmax. For several
    updates the logarithms are summed and normalised, as if their errors were independent (naive
    Bayes). The paper classifies each update separately and has no such rule. The errors are not
    independent, so the probability of an unknown user is then overconfident.

    Differs from the paper, which does not state epochs or batch size: here 100, and 32 as in
    Keras. At this rate a weak signal takes long: on 1,200 planted updates of 50 users top-1 was
    .32 after 30 epochs, .57 after 60, .80 after 100 and .82 after 200. A layer of more than
    8,192 numbers is projected at random (`linkage.count_sketch`). At most 24 rounds of
    simulated updates are used.

    A defense may draw something once per client, such as the mode of `mm_aug`. In a simulation
    it then draws once per known user, and the network can mistake the draw for a mark of the
    user. If a user's prior examples are cut into chunks, each chunk is a client with a draw of
    its own.

    Args:
        updates: the source of known updates: "shadow" as published.
        layer: the part of an update that is read; several parts are each scaled to length 1
            and read together.
        epochs: passes over the known updates.
        batch: updates per step.
        most_rounds: maximum number of rounds in which known users are trained.
        pieces: number of chunks of each simulated prior, each a separate client; 1 as
            published. Shadow devices hold their whole priors.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    epochs: int = 100
    batch: int = 32
    most_rounds: int = MAX_ROUNDS
    pieces: int = 1

    name: ClassVar[str] = "reidentify_mlp"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1, eq. 5"
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
        """Claim the network's log-probabilities for each target.

        Raises:
            NeedsError: if updates of known users are unavailable.

        """
        known = load_unit_updates(
            view, knowledge, self.updates, self.layer, self.pieces, self.most_rounds
        )
        classes = build_user_classes(known, self.name)
        heads = fit_multi_head_mlp(
            known.vectors,
            [classes.labels],
            [classes.count],
            seed.child(self.name),
            epochs=self.epochs,
            batch=self.batch,
        )
        sent = read_unit_updates(view, targets, self.layer)
        (log_probabilities,) = heads.log_probabilities(sent.vectors)
        claims = {}
        for target, rows in sent.rows_by_sender().items():
            scores = log_probabilities[rows].sum(0).log_softmax(0)  # (classes)
            unseen = float(scores[-1].exp()) if classes.has_unknown_class else None
            claims[target] = classes.build_claim(scores, unseen)
        return claims
