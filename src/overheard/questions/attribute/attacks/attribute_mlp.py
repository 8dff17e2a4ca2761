"""An attribute of the user behind a sender, from a perceptron that may infer identity too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

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
from overheard.linkage.multi_head_mlp import TRAINING_STEPS, fit_multi_head_mlp
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.estimators.attribute_claims import pool_attribute_claims


@final
@dataclass(frozen=True, slots=True)
class AttributeMlp(LearnsFromUpdates, Attack[Attribute]):
    """The paper's re-identification model, with attribute values instead of users.

    One layer of an update, flattened and scaled to length 1, is the input of a hidden layer of
    128 ReLUs and a softmax (`linkage.multi_head_mlp`). With `jointly`, a second softmax infers
    the user (Fig. 3d). It is trained on all users with prior examples, including those whose
    attribute is unknown.

    Differs from the paper: (1) The paper's attacker knows the attributes of the target users
    (`told="everyone"`), so recognising them is sufficient. By default, this attack learns from
    users who do not participate. (2) The logarithms of the probabilities are averaged over a
    sender's rounds; the paper evaluates each update separately.

    Args:
        attribute: name of the attribute; None = the only known one.
        jointly: whether it is also trained to infer the user.
        told: the users whose attribute the attacker knows.
        updates: "shadow" devices of the run, as published, or "simulated" at each broadcast.
        layer: the part of an update that is read.
        chunks: number of chunks of each user's prior, if simulated.
        steps: training steps.
        batch: updates per step.
        most_rounds: at most this many rounds of known users are simulated.

    """

    attribute: str | None = None
    jointly: bool = False
    told: LabelledUsers = "holdout"
    updates: UpdateSource = "simulated"
    layer: Layer = -1
    chunks: Positive = 1
    steps: Positive = TRAINING_STEPS
    batch: Positive = 32
    most_rounds: Positive = MAX_ROUNDS

    name: ClassVar[str] = "attribute_mlp"
    claim_type: ClassVar = Attribute
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.3 and Table 4"
    )
    quick_settings: ClassVar = {"steps": 100}

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Attribute]:
        """Claim the attribute of every target.

        Raises:
            NeedsError: if the attribute is known of too few users, or no updates are available.

        """
        known = load_known_updates(
            view, knowledge, self.updates, self.layer, self.chunks, self.most_rounds
        )
        labels = read_attribute_labels(
            known, KnownUsers.of(knowledge), self.attribute, self.told
        )
        # Only the second head learns from updates without a known value.
        rows = slice(None) if self.jointly else labels.labelled_rows()
        goals, classes = [labels.labels[rows]], [len(labels.values)]
        if self.jointly:
            goals.append(known.users)
            classes.append(len(known.names))
        heads = fit_multi_head_mlp(
            normalize(known.vectors[rows]),
            goals,
            classes,
            seed.child(self.name),
            steps=self.steps,
            batch=self.batch,
        )
        sent = read_sender_updates(view, targets, self.layer)
        log_probabilities = heads.log_probabilities(normalize(sent.vectors))[0]
        return pool_attribute_claims(labels, sent, log_probabilities)
