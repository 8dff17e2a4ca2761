"""Attacks on client sizes: by the length of updates, and by the sizes that they state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from statistics import median
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, Need, need_to_know
from overheard.core.parties import COHORT, Party, is_shadow_device
from overheard.core.seeds import Seed
from overheard.core.settings import Share
from overheard.core.view import View
from overheard_sizes.claim import LargerHalf
from overheard_sizes.known_facts import MedianSize


def _senders(view: View) -> list[Party]:
    return [sender for sender in view.senders() if not is_shadow_device(sender)]


OTHERS = Need(
    "updates of two clients or more, to compare them",
    lambda view, target, knowledge: len(_senders(view)) > 1,
)
"""A custom need: a description for the refusal, and a check."""


@final
@dataclass(frozen=True, slots=True)
class UpdateNorm(Attack[LargerHalf]):
    """Claims of all targets together that those with the longer updates hold more examples.

    Larger clients take more steps.

    Args:
        certainty: probability that is claimed for longer updates; shorter ones get the rest,
            and those of equal length 0.5.

    """

    certainty: Share = 0.8

    name: ClassVar[str] = "update_norm"
    claim_type: ClassVar = LargerHalf
    needs: ClassVar = frozenset({UPDATES, OTHERS})
    source: ClassVar[str] = "an example: the norm of an update grows with its steps"
    is_joint: ClassVar[bool] = True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LargerHalf]:
        """Compare the mean length of each target's updates with the median over all senders."""
        lengths = {sender: _mean_length(view, sender) for sender in {*_senders(view), *targets}}
        middle = median(lengths.values())
        chances = tuple(self._probability(lengths[target], middle) for target in targets)
        return {COHORT: LargerHalf(tuple(targets), chances)}

    def _probability(self, length: float, middle: float) -> float:
        # Updates of equal length differ by rounding, which tells nothing.
        if isclose(length, middle, rel_tol=1e-5):
            return 0.5
        return self.certainty if length > middle else 1 - self.certainty


@final
@dataclass(frozen=True, slots=True)
class StatedSize(Attack[LargerHalf]):
    """Compares the number of examples that an update states with the known median.

    It needs no update of others.
    """

    name: ClassVar[str] = "stated_size"
    claim_type: ClassVar = LargerHalf
    needs: ClassVar = frozenset({UPDATES, need_to_know(MedianSize)})
    source: ClassVar[str] = "an example: updates state the weight of their client in the mean"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LargerHalf]:
        """Claim what the last stated number of each target says."""
        middle = knowledge.facts.need(MedianSize).examples
        stated = {
            target: list(view.updates(target).values())[-1].examples for target in targets
        }
        return {
            target: LargerHalf((target,), (0.5 if size is None else float(size >= middle),))
            for target, size in stated.items()
        }


def _mean_length(view: View, sender: Party) -> float:
    updates = view.updates(sender).values()
    squares = [sum(float(w.double().square().sum()) for w in u.delta.values()) for u in updates]
    return sum(square**0.5 for square in squares) / len(squares) if squares else 0.0
