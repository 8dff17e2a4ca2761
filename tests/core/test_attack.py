"""An attack can run if the view and the knowledge meet its needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import pytest
import torch
from torch import nn

from overheard.core.attack import Attack, check_needs, missing_needs
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge, Prior
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import Aggregate, Broadcast, DistilledSet, Message, Update
from overheard.core.needs import (
    AUXILIARY,
    BROADCASTS,
    CANDIDATES,
    CROSS_ENTROPY,
    DISTILLED,
    METADATA,
    MODEL,
    NEEDS,
    RECIPE,
    TEXTS,
    TRAINED_MODEL,
    UPDATES,
    USERS,
    Need,
)
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.questions.label_shares.claim import LabelShares

ONE = client(1)
PRIOR = Examples(torch.zeros(1, 1), torch.tensor([0]))
WEIGHTS = {"w": torch.zeros(1)}
KNOWN_USERS, RECORDS, WORDS = (
    KnownUsers({"ann": PRIOR, "bob": PRIOR}),
    CandidateRecords(PRIOR),
    TokenWords(3),
)
ALL = Knowledge(
    2,
    build_model=lambda: nn.Linear(1, 2),
    auxiliary=Examples(torch.zeros(2, 1), torch.tensor([0, 1])),
    recipe=Recipe(rate=0.1, epochs=1, batch=1),
    facts=Facts(KNOWN_USERS, RECORDS, WORDS),
)


GUESSING = Prior(recipes=(Recipe(rate=0.2, epochs=1, batch=1),))
"""An attacker without the recipe that has one candidate recipe."""


@final
@dataclass(frozen=True, slots=True)
class Greedy(Attack[LabelShares]):
    """Has every need except distilled sets, and those that updates meet as well."""

    name: ClassVar[str] = "greedy"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset(NEEDS) - {DISTILLED, METADATA, TRAINED_MODEL}
    source: ClassVar[str] = "test"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        return {}


def server_view(*messages: Message) -> View:
    return Transcript(messages).seen_by(SERVER)


BROADCAST = Message(0, SERVER, frozenset({ONE}), Broadcast(WEIGHTS))
UPDATE = Message(0, ONE, frozenset({SERVER}), Update(WEIGHTS, 1))
WHOLE = server_view(BROADCAST, UPDATE)


def test_all_needs_can_be_met():
    assert missing_needs(Greedy(), WHOLE, ONE, ALL) == ()
    check_needs(Greedy(), WHOLE, ONE, ALL)


@pytest.mark.parametrize(
    ("knowledge", "need"),
    [
        (replace(ALL, auxiliary=None), AUXILIARY),
        (
            replace(ALL, auxiliary=Examples(torch.zeros(1, 1), torch.tensor([0]))),
            AUXILIARY,
        ),
        (replace(ALL, build_model=None), MODEL),
        (replace(ALL, recipe=None, prior=GUESSING), RECIPE),
        (
            replace(ALL, recipe=Recipe(0.1, 1, 8, loss="squared_error")),
            CROSS_ENTROPY,
        ),
        (replace(ALL, facts=Facts(KNOWN_USERS, WORDS)), CANDIDATES),
        (replace(ALL, facts=Facts(RECORDS, WORDS)), USERS),
        (
            replace(ALL, facts=ALL.facts.having(KnownUsers({"ann": PRIOR}, {"cem": PRIOR}))),
            USERS,
        ),
        (replace(ALL, facts=Facts(KNOWN_USERS, RECORDS)), TEXTS),
    ],
    ids=[
        "no examples",
        "no examples of class 1",
        "no model",
        "no recipe",
        "another loss",
        "no records",
        "no users",
        "one candidate",
        "no texts",
    ],
)
def test_names_the_one_need_that_is_not_met(knowledge: Knowledge, need: Need):
    assert missing_needs(Greedy(), WHOLE, ONE, knowledge) == (need.description,)


@final
@dataclass(frozen=True, slots=True)
class OnSets(Attack[LabelShares]):
    """Reads distilled sets."""

    name: ClassVar[str] = "on_sets"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({DISTILLED})
    source: ClassVar[str] = "test"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        return {}


def test_a_distilled_set_needs_the_servers_of_the_same_round():
    body = DistilledSet(torch.ones(1, 1), torch.ones(1, 2), torch.ones(1), torch.ones(1))
    from_client = Message(1, ONE, frozenset({SERVER}), body)
    for round, missing in ((1, ()), (0, (DISTILLED.description,))):
        shared = Message(round, SERVER, frozenset({ONE}), body)
        assert missing_needs(OnSets(), server_view(from_client, shared), ONE, ALL) == missing
    assert missing_needs(OnSets(), server_view(UPDATE), ONE, ALL) == (DISTILLED.description,)


def test_needs_the_broadcast_of_a_round_with_an_update():
    another = Message(1, SERVER, frozenset({ONE}), Broadcast(WEIGHTS))
    assert missing_needs(Greedy(), server_view(UPDATE), ONE, ALL) == (BROADCASTS.description,)
    assert missing_needs(Greedy(), server_view(another, UPDATE), ONE, ALL) == (
        BROADCASTS.description,
    )


def test_an_aggregate_counts_as_an_update_of_the_cohort_only():
    summed = Aggregate(WEIGHTS, frozenset({ONE, client(2)}))
    view = server_view(BROADCAST, Message(0, COHORT, frozenset({SERVER}), summed))
    assert missing_needs(Greedy(), view, COHORT, ALL) == ()
    assert missing_needs(Greedy(), view, ONE, ALL) == (UPDATES.description,)


def test_the_refusal_names_attack_target_and_every_missing_need():
    with pytest.raises(NeedsError) as refused:
        check_needs(Greedy(), server_view(), ONE, Knowledge(2))
    message = str(refused.value)
    assert message.startswith("greedy on client/1 needs ")
    for need in (UPDATES, AUXILIARY, MODEL, RECIPE, USERS):
        assert need.description in message
