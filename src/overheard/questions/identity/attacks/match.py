"""Matching of targets to users by networks that are trained on pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, final

import torch
from annotated_types import Ge
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.linkage.known_updates import MAX_ROUNDS, KnownUpdates, UpdateSource
from overheard.linkage.matcher import fit_cross_modal, fit_siamese
from overheard.linkage.training_pairs import draw_embedding_pairs, draw_update_pairs
from overheard.questions.identity.attacks.reidentify import (
    ClassifyUpdates,
    ScoreKind,
    UnitUpdateAttack,
    UpdateClassifier,
)
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.unit_updates import (
    Layers,
    read_unit_updates,
)
from overheard.questions.identity.estimators.user_classes import NO_UPDATE_SCORE, UserClasses


@final
@dataclass(frozen=True, slots=True)
class MatchSiamese(UpdateClassifier):
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
        pairs: number of training pairs, each used once.
        batch: pairs per step.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    pairs: Annotated[int, Ge(2)] = 32_000
    batch: Positive = 32
    most_rounds: Positive = MAX_ROUNDS
    pieces: Positive = 1

    name: ClassVar[str] = "match_siamese"
    score_kind: ClassVar[ScoreKind] = "scores"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1.2, eq. 6"
    )
    quick_settings: ClassVar = {"pairs": 1600}
    accurate_settings: ClassVar = {"pairs": 8000}

    def classify(
        self, known: KnownUpdates, classes: UserClasses, knowledge: Knowledge, seed: Seed
    ) -> ClassifyUpdates:
        """Train the network; one user must have two updates."""
        pairs = draw_update_pairs(known.users, self.pairs, seed.child("pairs"), self.name)
        matcher = fit_siamese(known.vectors, pairs, seed.child("weights"), batch=self.batch)
        is_of_user = one_hot(classes.labels, classes.count).double()  # (updates, classes)

        def mean_matches(vectors: Tensor) -> Tensor:
            probabilities = matcher.probabilities(vectors, known.vectors)
            return probabilities @ is_of_user / is_of_user.sum(0)

        return mean_matches


@final
@dataclass(frozen=True, slots=True)
class MatchCrossModal(UnitUpdateAttack):
    """Probability that a target's updates match a user's embedding from another modality.

    The attacker has one embedding for each candidate user, such as a mean over texts, and no
    example of the modality that clients train on. The network of section 4.3
    (`linkage.matcher`) learns from pairs of an update and an embedding; half of the pairs come
    from one user. Both vectors are scaled to length 1. A user without an embedding is ranked
    last.

    The paper does not say which users the network is trained on. It needs pairs that an
    attacker without prior examples of the candidate users cannot build for them. Here it
    learns from holdout users. With "everyone" it also learns from updates of the candidate
    users; this shows what updates reveal without the embedding. The paper evaluates on
    balanced pairs, for which guessing has an average precision of 0.5. These claims rank all
    users.

    Also differs from the paper in the embedding, which is that of the data set, and in the
    random projection of layers with more than 8,192 numbers (`linkage.count_sketch`).

    Args:
        learn_from: the users whose updates and embeddings are paired.
        pairs: number of training pairs, each used once.
        batch: pairs per step.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    learn_from: Literal["holdout", "everyone"] = "holdout"
    pairs: Annotated[int, Ge(2)] = 32_000
    batch: Positive = 32
    most_rounds: Positive = MAX_ROUNDS
    pieces: Positive = 1

    name: ClassVar[str] = "match_cross_modal"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1.1, eq. 7"
    )
    quick_settings: ClassVar = {"pairs": 1600}

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the mean match of each target's updates with each user's embedding.

        Raises:
            NeedsError: if embeddings are missing, or there are no users to learn from.

        """
        embeddings = KnownUsers.of(knowledge).embeddings
        users = tuple(KnownUsers.of(knowledge).prior_examples)
        named = [place for place, user in enumerate(users) if user in embeddings]
        if len(named) < 2:
            raise NeedsError(
                f"{self.name} needs embeddings of two or more candidate users, and has "
                f"{len(named)}: choose a data set that provides them"
            )
        known = self.known_updates(view, knowledge)
        has_embedding = torch.tensor([name in embeddings for name in known.names])
        if self.learn_from == "holdout":
            has_embedding[: known.candidate_count] = False
        is_learned_from = has_embedding[known.users]
        size = next(iter(embeddings.values())).shape
        embedding_table = normalize(
            torch.stack([embeddings.get(n, torch.zeros(size)).float() for n in known.names])
        )  # (users, dims)
        attack_seed = seed.child(self.name)
        matcher = fit_cross_modal(
            known.vectors[is_learned_from],
            embedding_table,
            draw_embedding_pairs(
                known.users[is_learned_from], self.pairs, attack_seed.child("pairs"), self.name
            ),
            attack_seed.child("weights"),
            batch=self.batch,
        )
        sent = read_unit_updates(view, targets, self.layer)
        probabilities = matcher.probabilities(sent.vectors, embedding_table[named])
        claims = {}
        for target, rows in sent.rows_by_sender().items():
            scores = probabilities.new_full((len(users),), NO_UPDATE_SCORE)
            scores[named] = probabilities[rows].mean(0)
            claims[target] = Identity(users, scores)
        return claims
