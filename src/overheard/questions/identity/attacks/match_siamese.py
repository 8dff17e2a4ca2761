"""Match targets to users with a Siamese network trained on pairs of updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch.nn.functional import one_hot

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.known_updates import MAX_ROUNDS, UpdateSource
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.matcher import fit_siamese
from overheard.linkage.training_pairs import draw_update_pairs
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
class MatchSiamese(LearnsFromUpdates, Attack[Identity]):
    """Mean probability that a user's known updates match those of the target.

    A Siamese network (`linkage.matcher`) learns whether two updates come from one sender. It is
    trained on pairs of updates of known users and holdout users; half of the pairs come from
    one user. The network compares updates and does not classify users, so it can also match
    users outside its training set. The attack ranks users with prior examples.

    Differs from the paper, which scores pairs: a user's score is the mean over all pairs of an
    update of the target and a known update of the user. The paper does not state the number
    of training pairs. A layer of more than 8,192 numbers is projected at random
    (`linkage.count_sketch`).

    Args:
        updates: the source of known updates: "shadow" as published.
        layer: the part of an update that is read; several parts are each scaled to length 1
            and read together.
        pairs: number of training pairs, each used once.
        batch: pairs per step.
        most_rounds: maximum number of rounds in which known users are trained.
        pieces: number of chunks of each simulated prior, each a separate client; 1 as
            published. Shadow devices hold their whole priors.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    pairs: int = 32_000
    batch: int = 32
    most_rounds: int = MAX_ROUNDS
    pieces: int = 1

    name: ClassVar[str] = "match_siamese"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1.2, eq. 6"
    )

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        check_layers(self.layer)
        if self.pairs < 2 or min(self.batch, self.most_rounds, self.pieces) < 1:
            raise ValueError(
                "pairs must be 2 or more, and batch, most_rounds and pieces 1 or more, got "
                f"{self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the mean match of each target with each user.

        Raises:
            NeedsError: if updates of known users are unavailable, or no user has two.

        """
        known = load_unit_updates(
            view, knowledge, self.updates, self.layer, self.pieces, self.most_rounds
        )
        classes = build_user_classes(known, self.name)
        vectors, attack_seed = known.vectors, seed.child(self.name)
        pairs = draw_update_pairs(
            known.users, self.pairs, attack_seed.child("pairs"), self.name
        )
        matcher = fit_siamese(vectors, pairs, attack_seed.child("weights"), batch=self.batch)
        sent = read_unit_updates(view, targets, self.layer)
        is_of_user = one_hot(classes.labels, classes.count).double()  # (updates, classes)
        probabilities = matcher.probabilities(sent.vectors, vectors)
        means = probabilities @ is_of_user / is_of_user.sum(0)
        return {
            target: classes.build_claim(means[rows].mean(0))
            for target, rows in sent.rows_by_sender().items()
        }
