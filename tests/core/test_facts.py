"""Tests of facts by kind."""

from dataclasses import dataclass
from typing import ClassVar, final

import pytest

from overheard.core.errors import NeedsError
from overheard.core.facts import Fact, Facts


@final
@dataclass(frozen=True, slots=True)
class Ages(Fact):
    how_to_get: ClassVar[str] = "the ages of users are missing: add `ages` to truth.json"
    years: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Towns(Fact):
    how_to_get: ClassVar[str] = "the towns of users are missing"
    names: tuple[str, ...] = ()


def test_a_fact_is_found_by_its_kind() -> None:
    facts = Facts[Fact](Ages((30,)), Towns(("Ulm",)))
    assert facts.need(Towns).names == ("Ulm",)
    assert facts.get(Ages) == Ages((30,))


def test_a_missing_fact_says_how_to_get_it() -> None:
    assert Facts[Fact]().get(Ages) is None
    with pytest.raises(NeedsError, match=r"add `ages` to truth\.json"):
        Facts[Fact](Towns()).need(Ages)


def test_two_facts_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="one fact of each kind, got Ages, Ages"):
        Facts[Fact](Ages((1,)), Ages((2,)))


def test_a_newer_fact_replaces_that_of_its_kind() -> None:
    facts = Facts[Fact](Ages((1,)), Towns(("Ulm",))).having(Ages((2,)))
    assert facts.need(Ages).years == (2,)
    assert len(tuple(facts)) == 2
