"""What attacks need: each thing says what it is, and whether it is there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, Party
from overheard.core.view import View


@final
@dataclass(frozen=True, slots=True)
class Need:
    """One thing without which an attack cannot run.

    An attack of another package may define needs of its own, with a check of their own.

    Args:
        words: what it is, as a refusal names it.
        is_met: whether it is there, for a claim about this target.

    """

    words: str
    is_met: Callable[[View, Party, Knowledge], bool] = field(repr=False)


def _has_broadcasts(view: View, target: Party, knowledge: Knowledge) -> bool:
    heard = set(view.heard(target))
    # Of who was not heard at all, the updates are what lacks.
    return bool(heard & view.broadcasts().keys()) or not heard


def _has_distilled(view: View, target: Party, knowledge: Knowledge) -> bool:
    return bool(view.distilled(target).keys() & view.distilled(SERVER).keys())


def _has_auxiliary(view: View, target: Party, knowledge: Knowledge) -> bool:
    return knowledge.auxiliary is not None and bool(
        (knowledge.auxiliary.counts(knowledge.classes) > 0).all()
    )


def _may_be_cross_entropy(view: View, target: Party, knowledge: Knowledge) -> bool:
    return knowledge.recipe is None or knowledge.recipe.loss == "cross_entropy"


BROADCASTS: Final = Need(
    "the broadcast of a round in which the target was heard", _has_broadcasts
)
UPDATES: Final = Need(
    "updates of the target that the observer can read",
    lambda view, target, knowledge: bool(view.heard(target)),
)
DISTILLED: Final = Need(
    "distilled sets of the target, and of the server in the same round", _has_distilled
)
AUXILIARY: Final = Need("labelled auxiliary examples of every class", _has_auxiliary)
MODEL: Final = Need(
    "the architecture of the model",
    lambda view, target, knowledge: knowledge.build_model is not None,
)
RECIPE: Final = Need(
    "how clients train: optimizer, rate, epochs, batch size",
    lambda view, target, knowledge: knowledge.recipe is not None,
)
RECIPES: Final = Need(
    "how clients train, or guesses at it (recipes of the virtual clients)",
    lambda view, target, knowledge: bool(knowledge.recipes()),
)
CROSS_ENTROPY: Final = Need(
    "clients who make the cross-entropy small, as far as is known", _may_be_cross_entropy
)
CANDIDATES: Final = Need(
    "records to ask about (data.candidates)",
    lambda view, target, knowledge: knowledge.candidates is not None,
)
USERS: Final = Need(
    "prior examples of two users or more whom it may name (data.people)",
    lambda view, target, knowledge: len(knowledge.people.priors) > 1,
)

NEEDS: Final = (
    BROADCASTS,
    UPDATES,
    DISTILLED,
    AUXILIARY,
    MODEL,
    RECIPE,
    RECIPES,
    CROSS_ENTROPY,
    CANDIDATES,
    USERS,
)
"""Ours, in the order in which a refusal names them; those of other packages come after."""
