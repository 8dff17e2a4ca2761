"""Devices whose updates look as if they were trained on hand-picked examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, final

import torch
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
class Profile(LearnsFromUpdates, Attack[Identity]):
    """For each profile by itself, how much a target's updates look as if trained on it.

    Those whom the attacker "knows" are profiles: sets of examples that it picked, one for each
    interest that it looks for (`data.partition.people`, prior = "profile"). Devices are to be
    ranked for a profile. The paper takes its re-identification network as it is, whose softmax
    shares one certainty out among the profiles: of a device that has two interests, or none, it
    must deny one or invent one. `reidentify_mlp` does that. Here each profile has a yes or no
    of its own, on the same hidden layer of 128 ReLUs, and all other profiles, and holdout users
    where there are any, are examples of no. The score is the log-odds, the mean over a target's
    updates; `unseen` the chance of none, as if profiles were independent.

    It misleads where a profile's examples are far more than a device holds: an update grows,
    and turns, with the number of steps. So a profile is cut into chunks, each of which trains
    as a client by itself.

    Args:
        updates: where labelled updates come from.
        layer: which part of an update is read; it is scaled to length 1.
        chunks: pieces of a profile's examples, where they are trained on by the attacker.
        epochs: passes over the known updates.
        batch: updates a step.
        most_rounds: in which profiles are trained.

    """

    updates: Source = "simulated"
    layer: Layer = -1
    chunks: int = 4
    epochs: int = 100
    batch: int = 32
    most_rounds: int = MOST_ROUNDS

    name: ClassVar[str] = "profile"
    answers: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Overheard, after Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section "
        "6.1.1, profile prior"
    )

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if min(self.chunks, self.epochs, self.batch, self.most_rounds) < 1:
            raise ValueError(
                f"chunks, epochs, batch, most_rounds must be 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the log-odds of each profile.

        Raises:
            NeedsError: if updates of profiles cannot be had.

        """
        known = known_updates(
            view, knowledge, self.updates, self.layer, self.chunks, self.most_rounds
        )
        classes = classes_of(known, self.name)
        heads = fit_heads(
            normalize(known.vectors),
            [(classes.labels == own).long() for own in range(len(classes.heard))],
            [2] * len(classes.heard),
            seed.child(self.name),
            epochs=self.epochs,
            batch=self.batch,
        )
        sent = sent_updates(view, targets, self.layer)
        told = heads.log_probabilities(normalize(sent.vectors))
        odds = torch.stack([own[:, 1] - own[:, 0] for own in told], 1)  # (updates, profiles)
        claims = {}
        for target, rows in sent.rows().items():
            mean = odds[rows].mean(0)
            none = prod((-mean).sigmoid().tolist())
            claims[target] = classes.identity(mean, none)
        return claims
