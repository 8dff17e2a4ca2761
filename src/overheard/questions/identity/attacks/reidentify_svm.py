"""Re-identification by a linear support vector machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.fitting.linear_svm import fit_linear_svm
from overheard.linkage.known_updates import MAX_ROUNDS, UpdateSource
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.unit_updates import (
    Layers,
    check_layers,
    load_unit_updates,
    read_unit_updates,
)
from overheard.questions.identity.estimators.user_classes import build_user_classes


@final
@dataclass(frozen=True, slots=True)
class ReidentifySvm(LearnsFromUpdates, Attack[Identity]):
    """A hyperplane between the updates of each known user and those of all others.

    One layer of an update, scaled to length 1, is read. The score is the margin, averaged over
    a sender's updates: margins are not probabilities and cannot be summed as such. Holdout
    users form one more class; its margin is not claimed, as it is not a probability.

    A baseline of the paper, which states only that it is linear. One versus rest, squared hinge
    loss and C = 1 are scikit-learn's defaults.

    Args:
        updates: the source of known updates: "shadow" as published.
        layer: the part of an update that is read; several parts are each scaled to length 1
            and read together.
        cost: C, the cost of a violated margin.
        most_rounds: maximum number of rounds in which known users are trained.
        pieces: number of chunks of each simulated prior, each a separate client; 1 as
            published. Shadow devices hold their whole priors.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    cost: float = 1.0
    most_rounds: int = MAX_ROUNDS
    pieces: int = 1

    name: ClassVar[str] = "reidentify_svm"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.1 and Table 3"
    )

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        check_layers(self.layer)
        if not self.cost > 0 or min(self.most_rounds, self.pieces) < 1:
            raise ValueError(
                f"cost must be above 0, most_rounds and pieces 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim the mean margins of each target.

        Raises:
            NeedsError: if updates of known users are unavailable.

        """
        known = load_unit_updates(
            view, knowledge, self.updates, self.layer, self.pieces, self.most_rounds
        )
        classes = build_user_classes(known, self.name)
        svm = fit_linear_svm(
            known.vectors,
            classes.labels,
            classes.count,
            seed.child(self.name),
            cost=self.cost,
        )
        sent = read_unit_updates(view, targets, self.layer)
        margins = svm.margins(sent.vectors)
        return {
            target: classes.build_claim(margins[rows].mean(0))
            for target, rows in sent.rows_by_sender().items()
        }
