"""A network that learned which updates match compares those of targets with one another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch.nn.functional import normalize

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
from overheard.linkage.told_beside import crowd_of
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.estimators.heard_apart import same_sender


@final
@dataclass(frozen=True, slots=True)
class LinkSiamese(LearnsFromUpdates, Attack[SameSender]):
    """The chance that updates of two pseudonyms match, by the network of `match_siamese`.

    Each target is compared with all others whose updates are read, but for those of its own
    rounds, as nobody answers twice in one; the score of two is the mean over all pairs of an
    update of the one and an update of the other. The network learned from known users, and need
    know neither sender. A control run, in which examples were exchanged among clients, does not
    bring it down to chance: who keeps the same examples sends alike, whoever it is.

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

    name: ClassVar[str] = "link_siamese"
    answers: ClassVar = SameSender
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1.2, "
        "eq. 6 where both updates are anonymous"
    )

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        if self.pairs < 2 or self.batch < 1 or self.most_rounds < 1:
            raise ValueError(
                f"pairs, batch and most_rounds must be 2, 1, 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, SameSender]:
        """Claim how well each target matches all others.

        Raises:
            NeedsError: if updates of known users cannot be had, none has two, or nobody was
                heard in other rounds alone.

        """
        crowd = crowd_of(view, knowledge.people.devices)
        known = known_updates(
            view, knowledge, self.updates, self.layer, most_rounds=self.most_rounds
        )
        own = seed.child(self.name)
        pairs = update_pairs(known.people, self.pairs, own.child("pairs"), self.name)
        matcher = fit_siamese(
            normalize(known.vectors), pairs, own.child("weights"), batch=self.batch
        )
        sent = sent_updates(view, crowd, self.layer)
        vectors, rows = normalize(sent.vectors), sent.rows()
        places = {who: place for place, who in enumerate(crowd)}
        senders = torch.tensor([places[who] for who in sent.senders])
        claims = {}
        for target in targets:
            mine = rows[target]
            chances = matcher.probabilities(vectors[mine], vectors)  # (own, updates)
            claims[target] = same_sender(self.name, crowd, senders, sent.rounds, mine, chances)
        return claims
