"""Linkage of targets by a siamese network that learned which updates match."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge
from torch.nn.functional import normalize

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.linkage.known_updates import (
    MAX_ROUNDS,
    UpdateSource,
    load_known_updates,
    read_sender_updates,
)
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.matcher import fit_siamese
from overheard.linkage.metadata_features import list_senders
from overheard.linkage.training_pairs import draw_update_pairs
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.estimators.disjoint_rounds import compare_senders


@final
@dataclass(frozen=True, slots=True)
class LinkSiamese(LearnsFromUpdates, Attack[SameSender]):
    """The probability that updates of two pseudonyms match, by the network of `match_siamese`.

    Each target is compared with all others except those that sent an update in one of its own
    rounds: a sender sends one update per round. The score of two targets is the mean over all
    pairs of their updates. The network is trained on known users and need not know either
    sender. A control run with permuted examples does not reduce the result to chance: clients
    that keep the same examples send similar updates, also if they belong to different users.

    Args:
        updates: source of known updates: "shadow" as published.
        layer: the part of an update that is read, scaled to length 1.
        pairs: number of training pairs, each used once.
        batch: pairs per step.
        most_rounds: at most this many rounds of known users are simulated.

    """

    updates: UpdateSource = "simulated"
    layer: Layer = -1
    pairs: Annotated[int, Ge(2)] = 32_000
    batch: Positive = 32
    most_rounds: Positive = MAX_ROUNDS

    name: ClassVar[str] = "link_siamese"
    claim_type: ClassVar = SameSender
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1.2, "
        "eq. 6 where both updates are anonymous"
    )
    quick_settings: ClassVar = {"pairs": 1600}
    accurate_settings: ClassVar = {"pairs": 8000}

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, SameSender]:
        """Claim how well each target matches the others.

        Raises:
            NeedsError: if no updates of known users are available, none has two, or a target
                shares a round with every other sender.

        """
        crowd = list_senders(view, KnownUsers.of(knowledge).shadow_devices)
        known = load_known_updates(
            view, knowledge, self.updates, self.layer, max_rounds=self.most_rounds
        )
        attack_seed = seed.child(self.name)
        pairs = draw_update_pairs(
            known.users, self.pairs, attack_seed.child("pairs"), self.name
        )
        matcher = fit_siamese(
            normalize(known.vectors), pairs, attack_seed.child("weights"), batch=self.batch
        )
        sent = read_sender_updates(view, crowd, self.layer)
        vectors, rows = normalize(sent.vectors), sent.rows_by_sender()
        indices = {sender: index for index, sender in enumerate(crowd)}
        senders = torch.tensor([indices[sender] for sender in sent.senders])
        claims = {}
        for target in targets:
            own = rows[target]
            evidence = matcher.probabilities(vectors[own], vectors)  # (own, updates)
            claims[target] = compare_senders(
                self.name, crowd, senders, sent.rounds, own, evidence
            )
        return claims
