"""What attacks need: each need has a description and a check."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final, final

from overheard.core.knowledge import Knowledge, KnownFact
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import Aggregate
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.view import View


@final
@dataclass(frozen=True, slots=True)
class Need:
    """A requirement without which an attack cannot run.

    Attacks of other packages may define further needs.

    Args:
        description: what is needed, as a refusal names it.
        is_met: returns whether the need is met for a claim about this target.

    """

    description: str
    is_met: Callable[[View, Party, Knowledge], bool] = field(repr=False)


@cache
def need_to_know(kind: type[KnownFact]) -> Need:
    """Return the need to know a fact of this kind."""
    return Need(
        kind.how_to_get, lambda view, target, knowledge: knowledge.facts.get(kind) is not None
    )


def _has_broadcasts(view: View, target: Party, knowledge: Knowledge) -> bool:
    rounds = set(view.rounds_with_updates(target))
    # Without any update the need UPDATES is not met; it alone should be named.
    return bool(rounds & view.broadcasts().keys()) or not rounds


def _has_trained_model(view: View, target: Party, knowledge: Knowledge) -> bool:
    if view.rounds_with_updates(target):
        return _has_broadcasts(view, target, knowledge)
    return target == COHORT and bool(view.models_after())


def _has_distilled(view: View, target: Party, knowledge: Knowledge) -> bool:
    return bool(view.distilled_sets(target).keys() & view.distilled_sets(SERVER).keys())


def _has_auxiliary(view: View, target: Party, knowledge: Knowledge) -> bool:
    return knowledge.auxiliary is not None and bool(
        (knowledge.auxiliary.label_counts(knowledge.classes) > 0).all()
    )


def _is_in_sum(view: View, target: Party, knowledge: Knowledge) -> bool:
    broadcasts = view.broadcasts().keys()
    in_aggregate = any(
        isinstance(message.body, Aggregate)
        and target in message.body.cohort
        and message.round in broadcasts
        for message in view.messages
    )
    # Whether the broadcast of an update can be read is another need.
    return in_aggregate or bool(view.rounds_with_updates(target))


def _is_cross_entropy_possible(view: View, target: Party, knowledge: Knowledge) -> bool:
    return knowledge.recipe is None or knowledge.recipe.loss == "cross_entropy"


CLASSES: Final = Need(
    "a task with classes; the run's is multi-label, regression or language modeling",
    lambda view, target, knowledge: knowledge.has_classes,
)
BROADCASTS: Final = Need(
    "the broadcast of a round with an update of the target", _has_broadcasts
)
TRAINED_MODEL: Final = Need(
    "a model that the target trained: its updates with their broadcasts or, for the cohort, "
    "the global model after a round",
    _has_trained_model,
)
METADATA: Final = Need(
    "updates of the target that the observer can read, or its encrypted messages",
    lambda view, target, knowledge: bool(
        view.rounds_with_updates(target) or any(one.sender == target for one in view.encrypted)
    ),
)
UPDATES: Final = Need(
    "updates of the target that the observer can read",
    lambda view, target, knowledge: bool(view.rounds_with_updates(target)),
)
SUMS: Final = Need(
    "updates of the target, or sums that name it and whose broadcasts can be read: who took "
    "part in a round must be known",
    _is_in_sum,
)
DISTILLED: Final = Need(
    "distilled sets of the target and of the server in the same round", _has_distilled
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
    "how clients train, or candidate recipes (recipes of the virtual clients)",
    lambda view, target, knowledge: bool(knowledge.candidate_recipes()),
)
CROSS_ENTROPY: Final = Need(
    "clients that train with the cross-entropy loss, as far as is known",
    _is_cross_entropy_possible,
)
FEWEST_VIRTUAL_CLIENTS: Final = 8
"""Fewest virtual clients that leave two for each part of a test: see `simulation.chunk`."""

VIRTUAL_CLIENTS: Final = Need(
    f"{FEWEST_VIRTUAL_CLIENTS} virtual clients or more: set virtual.clients",
    lambda view, target, knowledge: knowledge.compute.virtual_clients >= FEWEST_VIRTUAL_CLIENTS,
)
CANDIDATES: Final = need_to_know(CandidateRecords)
TEXTS: Final = need_to_know(TokenWords)
USERS: Final = Need(
    KnownUsers.how_to_get,
    lambda view, target, knowledge: len(KnownUsers.of(knowledge).prior_examples) > 1,
)

NEEDS: Final = (
    CLASSES,
    TRAINED_MODEL,
    METADATA,
    BROADCASTS,
    UPDATES,
    SUMS,
    DISTILLED,
    AUXILIARY,
    MODEL,
    RECIPE,
    RECIPES,
    CROSS_ENTROPY,
    VIRTUAL_CLIENTS,
    CANDIDATES,
    USERS,
    TEXTS,
)
"""Built-in needs, in the order in which a refusal names them; those of plugins follow."""
