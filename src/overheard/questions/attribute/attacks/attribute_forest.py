"""An attribute of the user behind a sender, from a random forest on absolute changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.linkage.attribute_labels import LabelledUsers, read_attribute_labels
from overheard.linkage.known_updates import (
    MAX_ROUNDS,
    UpdateSource,
    load_known_updates,
    read_sender_updates,
)
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.estimators.attribute_claims import pool_attribute_claims

TREES = 100
"""Number of trees, as in the authors' code."""

FEWEST_UPDATES = 5
"""Fewest updates in a leaf and in a node that is split, as in the authors' code."""


@final
@dataclass(frozen=True, slots=True)
class AttributeForest(LearnsFromUpdates, Attack[Attribute]):
    """Passive property inference: a random forest on the absolute change of each weight.

    The absolute values of an update, scaled to length 1, are the input of a forest of 100 trees
    with 5 or more updates per leaf. The forest is trained on updates of users with known
    attribute. They start from the same broadcasts as the targets' updates.

    Differs from the paper and its code: (1) They infer a property of a batch from gradients of
    single batches with and without it. Here it is a property of the user, inferred from
    updates after local training. (2) They read all layers, but only the largest change per row
    of convolutions and of matrices above 5,000 numbers. Here one layer is read; large tensors
    are projected before taking absolute values. (3) They standardise each number; this does not
    affect trees, so it is left out. (4) Attributes may have any number of values. (5) A leaf
    share of 0 would be certainty, so each value gets one extra vote (Laplace) before the
    logarithms are averaged over a sender's rounds.

    Args:
        attribute: name of the attribute; None = the only known one.
        told: the users whose attribute the attacker knows.
        updates: "shadow" devices of the run, or "simulated" at each broadcast, as in the paper.
        layer: the part of an update that is read.
        chunks: number of chunks of each user's prior, if simulated.
        most_rounds: at most this many rounds of known users are simulated.

    """

    attribute: str | None = None
    told: LabelledUsers = "holdout"
    updates: UpdateSource = "simulated"
    layer: Layer = -1
    chunks: Positive = 1
    most_rounds: Positive = MAX_ROUNDS

    name: ClassVar[str] = "attribute_forest"
    claim_type: ClassVar = Attribute
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Melis et al. 2019 (Exploiting Unintended Feature Leakage in Collaborative Learning, "
        "S&P), passive property inference; code: csong27/property-inference-collaborative-ml"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Attribute]:
        """Claim the attribute of every target.

        Raises:
            NeedsError: if the attribute is known of too few users, or no updates are available.

        """
        from sklearn.ensemble import RandomForestClassifier

        known = load_known_updates(
            view, knowledge, self.updates, self.layer, self.chunks, self.most_rounds
        )
        labels = read_attribute_labels(
            known, KnownUsers.of(knowledge), self.attribute, self.told
        )
        rows = labels.labelled_rows()
        # One process, so that results do not depend on the number of cores.
        forest = RandomForestClassifier(
            TREES,
            min_samples_leaf=FEWEST_UPDATES,
            min_samples_split=FEWEST_UPDATES,
            random_state=seed.value % 2**32,
            n_jobs=1,
        )
        forest.fit(_absolute_changes(known.vectors[rows]).numpy(), labels.labels[rows].numpy())
        sent = read_sender_updates(view, targets, self.layer)
        votes = torch.zeros(len(sent.vectors), len(labels.values), dtype=torch.float64)
        votes[:, torch.from_numpy(forest.classes_)] = TREES * torch.from_numpy(
            forest.predict_proba(_absolute_changes(sent.vectors).numpy())
        )
        return pool_attribute_claims(
            labels, sent, ((votes + 1) / (TREES + len(labels.values))).log()
        )


def _absolute_changes(vectors: Float[Tensor, "updates dims"]) -> Float[Tensor, "updates dims"]:
    return normalize(vectors.abs())
