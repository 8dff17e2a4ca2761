"""A network that learned which updates match compares those of targets with known users'."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch.nn.functional import normalize, one_hot

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.match_pairs import update_pairs
from overheard.linkage.matcher import fit_siamese
from overheard.linkage.prior_updates import MOST_ROUNDS, Source, known_updates, sent_updates
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.user_classes import classes_of


@final
@dataclass(frozen=True, slots=True)
class MatchSiamese(LearnsFromUpdates, Attack[Identity]):
    """The mean chance, over a user's known updates, that they match those of the target.

    A Siamese network (`linkage.matcher`) learns from pairs of known users' updates, holdout
    users' too, half of them of one user, whether a pair is of one sender. As it has learned to
    compare and not to name, a user whom it has not met could be matched as well; the attack
    names those of whom it has a prior.

    Differs from the paper, which scores pairs: a user's score is the mean over all pairs of an
    update of the target and a known one of the user. How many pairs are learned from it does
    not tell. A layer of more than 8,192 numbers is sketched (`linkage.sketch`).

    Args:
        updates: where labelled updates come from: "shadow" as published.
        layer: which part of an update is read; it is scaled to length 1.
        pairs: learned from, each once.
        batch: pairs a step.
        most_rounds: in which known users are trained.

    """

    updates: Source = "simulated"
    layer: Layer = -1
    pairs: int = 32_000
    batch: int = 32
    most_rounds: int = MOST_ROUNDS

    name: ClassVar[str] = "match_siamese"
    answers: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1.2, eq. 6"
    )

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.pairs < 2 or self.batch < 1 or self.most_rounds < 1:
            raise ValueError(
                f"pairs, batch and most_rounds must be 2, 1, 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the mean match of each target with each user.

        Raises:
            NeedsError: if updates of known users cannot be had, or none has two.

        """
        known = known_updates(
            view, knowledge, self.updates, self.layer, most_rounds=self.most_rounds
        )
        classes = classes_of(known, self.name)
        vectors, own = normalize(known.vectors), seed.child(self.name)
        pairs = update_pairs(known.people, self.pairs, own.child("pairs"), self.name)
        matcher = fit_siamese(vectors, pairs, own.child("weights"), batch=self.batch)
        sent = sent_updates(view, targets, self.layer)
        belongs = one_hot(classes.labels, classes.count).double()  # (updates, classes)
        chances = matcher.probabilities(normalize(sent.vectors), vectors)
        means = chances @ belongs / belongs.sum(0)
        return {
            target: classes.identity(means[rows].mean(0))
            for target, rows in sent.rows().items()
        }
