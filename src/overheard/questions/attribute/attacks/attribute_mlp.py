"""An attribute of the sender by a perceptron, by itself or jointly with who it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch.nn.functional import normalize

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.attribute_labels import Told, attribute_labels
from overheard.linkage.heads import fit_heads
from overheard.linkage.layers import Layer
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.prior_updates import MOST_ROUNDS, Source, known_updates, sent_updates
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.estimators.attribute_claims import attribute_claims


@final
@dataclass(frozen=True, slots=True)
class AttributeMlp(LearnsFromUpdates, Attack[Attribute]):
    """The re-identification model of the paper, with values of an attribute in place of users.

    One layer of an update, flattened and divided by its length, into one hidden layer of 128
    ReLUs and a softmax (`linkage.heads`). `jointly` gives it a second softmax that tells whose
    the update is (Fig. 3d): of all users of whom the attacker has prior examples, those too
    whose attribute it is not told.

    Differs from the paper: (1) it is told the attributes of the very users whom it is asked
    about (`told="everyone"`), so that to recognise them is enough. Unless told otherwise, here
    it learns from users who take no part. (2) Over the rounds of a sender the logarithms of
    the probabilities are averaged; the paper judges each update by itself.

    Args:
        attribute: which; None = the only one that is known.
        jointly: whether it is trained to tell the user too.
        told: of whom it is told the attribute.
        updates: "shadow" devices of the run, as published, or "simulated" at each broadcast.
        layer: which part of an update is read.
        chunks: pieces into which priors are cut where simulated.
        epochs: passes over the known updates.
        batch: updates a step.
        most_rounds: in which known users are trained.

    """

    attribute: str | None = None
    jointly: bool = False
    told: Told = "holdout"
    updates: Source = "simulated"
    layer: Layer = -1
    chunks: int = 1
    epochs: int = 60
    batch: int = 32
    most_rounds: int = MOST_ROUNDS

    name: ClassVar[str] = "attribute_mlp"
    answers: ClassVar = Attribute
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.3 and Table 4"
    )

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        if min(self.chunks, self.epochs, self.batch, self.most_rounds) < 1:
            raise ValueError(
                f"chunks, epochs, batch and most_rounds must be 1 or more, got {self}"
            )

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
        # By itself it learns nothing from updates of which no value is told.
        rows = slice(None) if self.jointly else told.told()
        labels, classes = [told.labels[rows]], [len(told.values)]
        if self.jointly:
            labels.append(known.people)
            classes.append(len(known.names))
        heads = fit_heads(
            normalize(known.vectors[rows]),
            labels,
            classes,
            seed.child(self.name),
            epochs=self.epochs,
            batch=self.batch,
        )
        sent = sent_updates(view, targets, self.layer)
        return attribute_claims(told, sent, heads.log_probabilities(normalize(sent.vectors))[0])
