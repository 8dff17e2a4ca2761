"""A network that learned which update goes with which embedding matches targets to users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from torch.nn.functional import normalize

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.match_pairs import embedding_pairs
from overheard.linkage.matcher import fit_cross_modal
from overheard.linkage.prior_updates import MOST_ROUNDS, Source, known_updates, sent_updates
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.user_classes import UNHEARD


@final
@dataclass(frozen=True, slots=True)
class MatchCrossModal(LearnsFromUpdates, Attack[Identity]):
    """The chance that a target's updates go with what is known of a user in another modality.

    Of the users whom it may name the attacker has an embedding each, such as the mean over
    texts, and no example of the modality that clients train on. What goes with what, the
    network of section 4.3 (`linkage.matcher`) learns from pairs of an update and an embedding,
    half of them of one person, of people of whom the attacker has both. Both are scaled to
    length 1; a user without an embedding is named last.

    The paper does not say on whom it trains, and calls for pairs (update, embedding) that an
    attacker without prior examples of those users could not make of them. So it learns from
    holdout users here; "everyone" lets it learn from updates of the very users whom it names
    too, and tells what the embedding adds nothing to. Its evaluation is on balanced pairs,
    whose blind average precision is 0.5; claims rank all users.

    Differs from the paper also in the embedding, which is what the data set has, and in a
    sketch of layers of more than 8,192 numbers (`linkage.sketch`).

    Args:
        updates: where labelled updates come from: "shadow" as published.
        layer: which part of an update is read.
        learn_from: whose updates and embeddings are paired.
        pairs: learned from, each once.
        batch: pairs a step.
        most_rounds: in which people are trained.

    """

    updates: Source = "simulated"
    layer: Layer = -1
    learn_from: Literal["holdout", "everyone"] = "holdout"
    pairs: int = 32_000
    batch: int = 32
    most_rounds: int = MOST_ROUNDS

    name: ClassVar[str] = "match_cross_modal"
    answers: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1.1, eq. 7"
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
        """Claim the mean match of each target's updates with each user's embedding.

        Raises:
            NeedsError: if no embeddings are known, or there is nobody to learn from.

        """
        embeddings = knowledge.people.embeddings
        users = tuple(knowledge.people.priors)
        named = [place for place, user in enumerate(users) if user in embeddings]
        if len(named) < 2:
            raise NeedsError(
                f"{self.name} needs embeddings of two users or more whom it may name, and has "
                f"{len(named)}: take a data set that has them"
            )
        known = known_updates(
            view, knowledge, self.updates, self.layer, most_rounds=self.most_rounds
        )
        shown = torch.tensor([name in embeddings for name in known.names])
        if self.learn_from == "holdout":
            shown[: known.named] = False
        learned = shown[known.people]
        size = next(iter(embeddings.values())).shape
        table = normalize(
            torch.stack([embeddings.get(n, torch.zeros(size)).float() for n in known.names])
        )  # (people, dims)
        own = seed.child(self.name)
        matcher = fit_cross_modal(
            normalize(known.vectors[learned]),
            table,
            embedding_pairs(known.people[learned], self.pairs, own.child("pairs"), self.name),
            own.child("weights"),
            batch=self.batch,
        )
        sent = sent_updates(view, targets, self.layer)
        chances = matcher.probabilities(normalize(sent.vectors), table[named])
        claims = {}
        for target, rows in sent.rows().items():
            scores = chances.new_full((len(users),), UNHEARD)
            scores[named] = chances[rows].mean(0)
            claims[target] = Identity(users, scores)
        return claims
