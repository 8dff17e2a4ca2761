"""The contract tests of questions find facts that nobody makes."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, final

import pytest

from overheard.core.knowledge import KnownFact
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import Renaming, TrueFact
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.question import Question
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.scorer import SameSenderScorer
from overheard.testing import check_question


@final
@dataclass(frozen=True, slots=True)
class Hats(TrueFact):
    """Who wears a hat."""

    clients_with_hat: tuple[Party, ...]

    key = "hats"
    form = tuple[str, ...]
    how_to_get = "add `hats`"

    @classmethod
    def from_json(cls, stated: Any) -> "Hats":
        return cls(tuple(map(Party, stated)))

    def to_json(self) -> Any:
        return self.clients_with_hat

    def clients(self) -> Collection[Party]:
        return self.clients_with_hat

    def renamed(self, names: Renaming) -> "Hats":
        held = names.rename_parties(dict.fromkeys(self.clients_with_hat))
        return replace(self, clients_with_hat=tuple(held))


@final
@dataclass(frozen=True, slots=True)
class HatPrice(KnownFact):
    """What a hat costs."""

    price: float
    how_to_get = "the price of a hat"


@dataclass(frozen=True, slots=True)
class HatQuestion(Question[SameSender]):
    """A question for tests."""

    name = "same_sender"
    source = "a test of ours"

    @property
    def scorer(self) -> SameSenderScorer:
        return SameSenderScorer()


@final
@dataclass(frozen=True, slots=True)
class MakesNothing(HatQuestion):
    """Reads and gives facts, and makes none of its own."""


@final
@dataclass(frozen=True, slots=True)
class MakesHats(HatQuestion):
    """Makes both facts."""

    def make_true_facts(
        self, dataset: Dataset, partition: DataPartition
    ) -> tuple[TrueFact, ...]:
        return (Hats(()),)

    def make_known_facts(
        self, dataset: Dataset, partition: DataPartition, seed: Seed
    ) -> tuple[KnownFact, ...]:
        return (HatPrice(3.0),)


@pytest.mark.parametrize(
    ("question", "reads", "gives", "words"),
    [
        (MakesNothing, (Hats,), (), "nothing makes the Hats .* from `make_true_facts`"),
        (MakesNothing, (), (HatPrice,), "nothing makes the HatPrice .* `make_known_facts`"),
        (MakesHats, (), (HatPrice,), "returns a Hats, which `reads` does not have"),
        (MakesHats, (Hats,), (), "returns a HatPrice, which `gives` does not have"),
        (MakesHats, (Hats, HatPrice), (), "HatPrice, which is no TrueFact"),
    ],
)
def test_finds_facts_without_a_maker_and_facts_that_are_not_named(
    monkeypatch: pytest.MonkeyPatch,
    question: type[Question[SameSender]],
    reads: tuple[type[Any], ...],
    gives: tuple[type[Any], ...],
    words: str,
) -> None:
    monkeypatch.setattr(question, "reads", reads)
    monkeypatch.setattr(question, "gives", gives)
    with pytest.raises(AssertionError, match=words):
        check_question(question())


def test_accepts_facts_of_the_question_and_those_that_are_drawn_with_the_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MakesHats, "reads", (Hats, UsersOfClients))
    monkeypatch.setattr(MakesHats, "gives", (HatPrice, TokenWords))
    check_question(MakesHats())
