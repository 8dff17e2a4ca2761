"""Find clients whose updates resemble training on hand-picked examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.linkage.known_updates import MAX_ROUNDS, UpdateSource
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.multi_head_mlp import TRAINING_STEPS, fit_multi_head_mlp
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.unit_updates import (
    Layers,
    load_unit_updates,
    read_unit_updates,
)
from overheard.questions.identity.estimators.user_classes import build_user_classes


@final
@dataclass(frozen=True, slots=True)
class Profile(LearnsFromUpdates, Attack[Identity]):
    """For each profile separately, how much a target's updates resemble training on it.

    The "known users" are profiles: sets of examples that the attacker picked, one for each
    interest of concern (`data.people`, prior = "profile"). Clients are ranked for
    each profile. The paper uses its re-identification network unchanged. Its softmax divides
    one probability among the profiles, so for a client with two interests, or none, it must
    deny or invent one; `reidentify_mlp` does that. Here each profile has its own binary output
    on the same hidden layer of 128 ReLUs. All other profiles and any holdout users are the
    negative examples. The score is the mean log-odds over a target's updates. `unseen` is the
    probability of no profile, as if profiles were independent.

    Misleading if a profile has far more examples than a client: the length and direction of an
    update change with the number of steps. Therefore a profile is cut into chunks, each of
    which trains as a separate client.

    Args:
        updates: the source of known updates.
        layer: the part of an update that is read; several parts are each scaled to length 1
            and read together.
        chunks: number of chunks of each profile's examples, if the attacker trains on them.
        steps: training steps.
        batch: updates per step.
        most_rounds: maximum number of rounds in which profiles are trained.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    chunks: Positive = 4
    steps: Positive = TRAINING_STEPS
    batch: Positive = 32
    most_rounds: Positive = MAX_ROUNDS

    name: ClassVar[str] = "profile"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Overheard, after Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section "
        "6.1.1, profile prior"
    )
    quick_settings: ClassVar = {"steps": 20}

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the log-odds of each profile.

        Raises:
            NeedsError: if updates of profiles are unavailable.

        """
        known = load_unit_updates(
            view, knowledge, self.updates, self.layer, self.chunks, self.most_rounds
        )
        classes = build_user_classes(known, self.name)
        heads = fit_multi_head_mlp(
            known.vectors,
            [(classes.labels == profile).long() for profile in range(len(classes.class_users))],
            [2] * len(classes.class_users),
            seed.child(self.name),
            steps=self.steps,
            batch=self.batch,
        )
        sent = read_unit_updates(view, targets, self.layer)
        outputs = heads.log_probabilities(sent.vectors)
        odds = torch.stack(
            [output[:, 1] - output[:, 0] for output in outputs], 1
        )  # (updates, profiles)
        claims = {}
        for target, rows in sent.rows_by_sender().items():
            mean = odds[rows].mean(0)
            unseen = prod((-mean).sigmoid().tolist())
            claims[target] = classes.build_claim(mean, unseen)
        return claims
