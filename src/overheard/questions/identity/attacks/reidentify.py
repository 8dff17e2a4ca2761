"""Re-identification by classifiers that learn from updates of known users."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.threads import single_thread
from overheard.linkage.attribute_labels import read_attribute_labels
from overheard.linkage.known_updates import MAX_ROUNDS, KnownUpdates, UpdateSource
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.multi_head_mlp import TRAINING_STEPS, fit_multi_head_mlp
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.unit_updates import (
    Layers,
    load_unit_updates,
    read_unit_updates,
)
from overheard.questions.identity.estimators.user_classes import (
    UserClasses,
    build_user_classes,
)

DISTANCE_TOLERANCE = 1e-6
"""Squared distances of unit vectors that differ by no more are equal up to rounding."""

ScoreKind = Literal["log-probabilities", "shares", "scores"]
"""What a classifier gives each class for an update. Log-probabilities of a sender's updates are
summed and normalised, all else is averaged. Scores are no probabilities, so that of unknown
users is not claimed."""

ClassifyUpdates = Callable[[Float[Tensor, "updates dims"]], Float[Tensor, "updates classes"]]
"""Returns for each update what its classifier gives each class."""


class UnitUpdateAttack(LearnsFromUpdates, Attack[Identity]):
    """An attack that reads one layer of updates, or several, each scaled to length 1.

    Args:
        updates: the source of known updates: "shadow" devices of the run, as published, or
            "simulated" at each broadcast.
        layer: the part of an update that is read; several parts are each scaled to length 1
            and read together.
        most_rounds: maximum number of rounds in which known users are trained.
        pieces: number of chunks of each simulated prior, each a separate client; 1 as
            published. Shadow devices hold their whole priors.

    """

    __slots__ = ()

    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})

    layer: Layers
    most_rounds: int
    pieces: int

    def known_updates(self, view: View, knowledge: Knowledge) -> KnownUpdates:
        """Return the updates of known users.

        Raises:
            NeedsError: if they are unavailable.

        """
        return load_unit_updates(
            view, knowledge, self.updates, self.layer, self.pieces, self.most_rounds
        )


class UpdateClassifier(UnitUpdateAttack):
    """An attack that learns from updates of known users to classify each update of a target.

    If there are holdout users, they form one more class.
    """

    __slots__ = ()

    score_kind: ClassVar[ScoreKind]

    @abstractmethod
    def classify(
        self, known: KnownUpdates, classes: UserClasses, knowledge: Knowledge, seed: Seed
    ) -> ClassifyUpdates:
        """Return a classifier that has learned from the known updates.

        Args:
            known: the updates of known users.
            classes: the classes of these updates.
            knowledge: the attacker's knowledge.
            seed: seed of the attack.

        """

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim a score of each known user for each target.

        Raises:
            NeedsError: if updates of known users are unavailable, or what `classify` needs.

        """
        known = self.known_updates(view, knowledge)
        classes = build_user_classes(known, self.name)
        classified = self.classify(known, classes, knowledge, seed.child(self.name))
        sent = read_unit_updates(view, targets, self.layer)
        scores = classified(sent.vectors)
        return {
            target: self._claim(scores[rows], classes)
            for target, rows in sent.rows_by_sender().items()
        }

    def _claim(
        self, scores: Float[Tensor, "updates classes"], classes: UserClasses
    ) -> Identity:
        """Return the claim about the sender of these updates."""
        unseen = None
        if self.score_kind == "log-probabilities":
            joined = scores.sum(0).log_softmax(0)  # (classes)
            unseen = float(joined[-1].exp())
        else:
            joined = scores.mean(0)  # (classes)
            if self.score_kind == "shares":
                unseen = min(1.0, float(joined[-1]))
        return classes.build_claim(joined, unseen if classes.has_unknown_class else None)


@final
@dataclass(frozen=True, slots=True)
class ReidentifyMlp(UpdateClassifier):
    """One hidden layer of 128 ReLUs from an update to a softmax over the known users.

    It is trained on the updates of known users of all rounds together. Its input is one layer
    of an update, scaled to length 1. Holdout users, if any, form one more class: a sender
    unknown to the attacker (the open world of section 6.1.2). `unseen` is the probability of
    that class.

    The scores of a sender with one update are the logarithms of the softmax. For several
    updates the logarithms are summed and normalised, as if their errors were independent (naive
    Bayes). The paper classifies each update separately and has no such rule. The errors are not
    independent, so the probability of an unknown user is then overconfident.

    Differs from the paper, which states neither steps nor batch size: here
    `linkage.multi_head_mlp.TRAINING_STEPS`, and 32 as in Keras. At this rate a weak signal
    takes long. A layer of more than 8,192 numbers is projected at random
    (`linkage.count_sketch`). At most 24 rounds of simulated updates are used.

    A defense may draw something once per client, such as the mode of `mm_aug`. In a simulation
    it then draws once per known user, and the network can mistake the draw for a mark of the
    user. If a user's prior examples are cut into chunks, each chunk is a client with a draw of
    its own.

    Args:
        steps: training steps.
        batch: updates per step.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    steps: Positive = TRAINING_STEPS
    batch: Positive = 32
    most_rounds: Positive = MAX_ROUNDS
    pieces: Positive = 1

    name: ClassVar[str] = "reidentify_mlp"
    score_kind: ClassVar[ScoreKind] = "log-probabilities"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 4.3 and 6.1, eq. 5"
    )
    quick_settings: ClassVar = {"steps": 100}

    def classify(
        self, known: KnownUpdates, classes: UserClasses, knowledge: Knowledge, seed: Seed
    ) -> ClassifyUpdates:
        """Train the network."""
        heads = fit_multi_head_mlp(
            known.vectors,
            [classes.labels],
            [classes.count],
            seed,
            steps=self.steps,
            batch=self.batch,
        )
        return lambda vectors: heads.log_probabilities(vectors)[0]


@final
@dataclass(frozen=True, slots=True)
class ReidentifyJointly(UpdateClassifier):
    """The paper's re-identification model with a second softmax for an attribute.

    Both outputs share one hidden layer of 128 ReLUs, and both cross-entropies have equal weight
    (Fig. 3d, `linkage.multi_head_mlp`); the column "MTL, Deanon" of Table 4. Compared with
    `reidentify_mlp`, it shows whether a known attribute of the users helps re-identification.

    Everything else is as in `reidentify_mlp`: the settings, the class of unknown users, the sum
    over the rounds of a sender and the differences from the paper. Updates of users who do not
    take part also train the attribute output if their attribute is known.

    Args:
        attribute: its name; None = the only known attribute.
        steps: training steps.
        batch: updates per step.

    """

    attribute: str | None = None
    updates: UpdateSource = "simulated"
    layer: Layers = -1
    steps: Positive = TRAINING_STEPS
    batch: Positive = 32
    most_rounds: Positive = MAX_ROUNDS
    pieces: Positive = 1

    name: ClassVar[str] = "reidentify_jointly"
    score_kind: ClassVar[ScoreKind] = "log-probabilities"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.3 and Table 4"
    )
    quick_settings: ClassVar = {"steps": 100}

    def classify(
        self, known: KnownUpdates, classes: UserClasses, knowledge: Knowledge, seed: Seed
    ) -> ClassifyUpdates:
        """Train the network; it needs an attribute of the users."""
        attribute = read_attribute_labels(
            known, KnownUsers.of(knowledge), self.attribute, "everyone"
        )
        heads = fit_multi_head_mlp(
            known.vectors,
            [classes.labels, attribute.labels],
            [classes.count, len(attribute.values)],
            seed,
            steps=self.steps,
            batch=self.batch,
        )
        return lambda vectors: heads.log_probabilities(vectors)[0]


@final
@dataclass(frozen=True, slots=True)
class ReidentifySvm(UpdateClassifier):
    """A hyperplane between the updates of each known user and those of all others.

    One layer of an update, scaled to length 1, is read. The score is the margin, averaged over
    a sender's updates: margins are not probabilities and cannot be summed as such. Holdout
    users form one more class; its margin is not claimed, as it is not a probability.

    A baseline of the paper, which states only that it is linear. One versus rest, squared hinge
    loss and C = 1 are scikit-learn's defaults. The paper's values fit `hard` scores: in all of
    its Table 3, top-5 = top-1 + (1 - top-1) 4 / (U - 1).

    Args:
        cost: C, the cost of a violated margin.
        hard: whether an update scores 1 for the user with the largest margin and 0 for all
            others, in place of the margins.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    cost: Annotated[float, Gt(0)] = 1.0
    most_rounds: Positive = MAX_ROUNDS
    pieces: Positive = 1
    hard: bool = False

    name: ClassVar[str] = "reidentify_svm"
    score_kind: ClassVar[ScoreKind] = "scores"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.1 and Table 3"
    )

    def classify(
        self, known: KnownUpdates, classes: UserClasses, knowledge: Knowledge, seed: Seed
    ) -> ClassifyUpdates:
        """Fit the hyperplanes."""
        labels, count = classes.labels, classes.count
        machine = fit_linear_svm(known.vectors, labels, count, seed, cost=self.cost)
        if not self.hard:
            return machine.margins
        return lambda vectors: one_hot(machine.margins(vectors).argmax(1), count).double()


@final
@dataclass(frozen=True, slots=True)
class ReidentifyKnn(UpdateClassifier):
    """Each user's share of the nearest known updates.

    One layer of an update, scaled to length 1, is read. Distances are Euclidean, and all
    neighbours have equal weight. Known updates tied at the last distance share the remaining
    places, so their order does not matter. A sender with several updates has the mean of their
    shares. Holdout users are neighbours too; their share is `unseen`, as coarse as the scores.

    Args:
        neighbours: number of neighbours; all, if fewer updates are known.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    neighbours: Positive = 10
    most_rounds: Positive = MAX_ROUNDS
    pieces: Positive = 1

    name: ClassVar[str] = "reidentify_knn"
    score_kind: ClassVar[ScoreKind] = "shares"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.1 and Table 3"
    )

    def classify(
        self, known: KnownUpdates, classes: UserClasses, knowledge: Knowledge, seed: Seed
    ) -> ClassifyUpdates:
        """Return the shares of the nearest known updates."""
        is_of_class = one_hot(classes.labels, classes.count).double()  # (updates, classes)

        def shares(vectors: Tensor) -> Tensor:
            with single_thread():
                return _neighbour_weights(vectors, known.vectors, self.neighbours) @ is_of_class

        return shares


def _neighbour_weights(
    sent: Float[Tensor, "sent dims"], known: Float[Tensor, "known dims"], count: int
) -> Float[Tensor, "sent known"]:
    """Return the weight of each known update for each sent update; rows sum to 1."""
    count = min(count, len(known))
    distances = (
        sent.square().sum(1, keepdim=True) + known.square().sum(1) - 2 * sent @ known.T
    ).double()
    farthest = distances.kthvalue(count, dim=1, keepdim=True).values
    nearer = (distances < farthest - DISTANCE_TOLERANCE).double()
    tied = ((distances - farthest).abs() <= DISTANCE_TOLERANCE).double()
    left = count - nearer.sum(1, keepdim=True)
    return (nearer + tied * left / tied.sum(1, keepdim=True)) / count


TOLERANCE = 1e-3
"""Largest violation of the optimality conditions at which the fit stops; margins are of the
order of 1."""

MAX_SWEEPS = 500
"""Most sweeps over all examples; a few dozen are usual."""


@final
@dataclass(frozen=True, slots=True)
class LinearSvm:
    """A fitted linear support vector machine.

    Args:
        weight: weights of each class.
        intercept: the margin of each class at 0.

    """

    weight: Float[Tensor, "numbers classes"]
    intercept: Float[Tensor, " classes"]

    def margins(
        self, vectors: Float[Tensor, "examples dims"]
    ) -> Float[Tensor, "examples classes"]:
        """Compute the margin of each example for each class, in float64."""
        return vectors.double() @ self.weight + self.intercept


def fit_linear_svm(
    vectors: Float[Tensor, "examples dims"],
    labels: Int[Tensor, " examples"],
    classes: int,
    seed: Seed,
    *,
    cost: float = 1.0,
) -> LinearSvm:
    """Minimise for each class  |w|^2 / 2 + C sum_i max(0, 1 - y_i w x_i)^2,  y_i = 1 or -1.

    This is scikit-learn's `LinearSVC`, with the intercept as the weight of a constant 1, by
    dual coordinate descent (Hsieh et al. 2008).

    Args:
        vectors: one vector per example.
        labels: 0 to classes - 1, each at least once.
        classes: number of classes.
        seed: seed of the order of the examples.
        cost: C.

    """
    if classes < 2 or len(torch.unique(labels)) != classes:
        raise ValueError(f"expected examples of each of two classes or more, got {classes}")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    machine = LinearSVC(
        C=cost,
        tol=TOLERANCE,
        max_iter=MAX_SWEEPS,
        dual=True,
        random_state=seed.value % 2**32,
    )
    with single_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The weights are sums of the examples, so coordinates in a basis of these are enough.
        # With 480 examples of 8,192 numbers this takes a tenth of the time.
        basis, coordinates = torch.linalg.qr(vectors.double().T)
        machine.fit(coordinates.T.numpy(), labels.numpy())
        weight, intercept = machine.coef_, machine.intercept_
        if classes == 2:  # one hyperplane stands for both
            weight, intercept = (np.concatenate((-one, one)) for one in (weight, intercept))
        return LinearSvm(basis @ torch.from_numpy(weight).T, torch.from_numpy(intercept))
