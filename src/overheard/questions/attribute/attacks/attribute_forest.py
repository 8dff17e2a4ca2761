"""An attribute of the sender by a random forest over the size of each change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from sklearn.ensemble import RandomForestClassifier
from torch import Tensor
from torch.nn.functional import normalize

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.attribute_labels import Told, attribute_labels
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.prior_updates import MOST_ROUNDS, Source, known_updates, sent_updates
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.estimators.attribute_claims import attribute_claims

TREES = 100
"""As in their code."""

LEAST = 5
"""Updates in a leaf, and in a node that is split, as in their code."""


@final
@dataclass(frozen=True, slots=True)
class AttributeForest(LearnsFromUpdates, Attack[Attribute]):
    """Passive property inference: a random forest on how much each weight changed.

    An update without its signs, divided by its length, goes to a forest of 100 trees with 5
    updates or more a leaf. The forest learns from updates of users whose attribute is told,
    made from the same broadcasts as those it is asked about.

    Differs from the paper and its code: (1) they tell a property of the batch from gradients of
    single batches with and without it; here it is that of the user, told from what users send
    after local training. (2) They look at all layers, of convolutions and of matrices above
    5,000 numbers at the largest change a row only; here at one layer, large tensors being
    sketched before their signs go. (3) They standardise each number, which moves no split of a
    tree, hence is left out. (4) Any number of values. (5) A leaf's share of 0 would be certain:
    one vote is added to each value's share among those of the trees (Laplace), before the
    logarithms are averaged over the rounds of a sender.

    Args:
        attribute: which; None = the only one that is known.
        told: of whom it is told the attribute.
        updates: "shadow" devices of the run, or "simulated" at each broadcast, as in the paper.
        layer: which part of an update is read.
        chunks: pieces into which priors are cut where simulated.
        most_rounds: in which known users are trained.

    """

    attribute: str | None = None
    told: Told = "holdout"
    updates: Source = "simulated"
    layer: Layer = -1
    chunks: int = 1
    most_rounds: int = MOST_ROUNDS

    name: ClassVar[str] = "attribute_forest"
    answers: ClassVar = Attribute
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Melis et al. 2019 (Exploiting Unintended Feature Leakage in Collaborative Learning, "
        "S&P), passive property inference; code: csong27/property-inference-collaborative-ml"
    )

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        if self.chunks < 1 or self.most_rounds < 1:
            raise ValueError(f"chunks and most_rounds must be 1 or more, got {self}")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Attribute]:
        """Claim the attribute of every target.

        Raises:
            NeedsError: if no attribute is told of enough users, or updates cannot be had.

        """
        known = known_updates(
            view, knowledge, self.updates, self.layer, self.chunks, self.most_rounds
        )
        told = attribute_labels(known, knowledge.people, self.attribute, self.told)
        rows = told.told()
        # One process: bits must not hang on who else computes.
        forest = RandomForestClassifier(
            TREES,
            min_samples_leaf=LEAST,
            min_samples_split=LEAST,
            random_state=seed.value % 2**32,
            n_jobs=1,
        )
        forest.fit(_changes(known.vectors[rows]).numpy(), told.labels[rows].numpy())
        sent = sent_updates(view, targets, self.layer)
        votes = torch.zeros(len(sent.vectors), len(told.values), dtype=torch.float64)
        votes[:, torch.from_numpy(forest.classes_)] = TREES * torch.from_numpy(
            forest.predict_proba(_changes(sent.vectors).numpy())
        )
        return attribute_claims(told, sent, ((votes + 1) / (TREES + len(told.values))).log())


def _changes(vectors: Float[Tensor, "updates dims"]) -> Float[Tensor, "updates dims"]:
    return normalize(vectors.abs())
