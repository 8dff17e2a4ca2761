"""The errors of a document are few, however many of its items are wrong."""

from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.disk import bounded_errors
from overheard.disk.bounded_errors import BOUNDED, BoundedModel, describe_errors


@dataclass
class Inner:
    numbers: tuple[int, ...]
    by_name: dict[str, int]


@dataclass
class Outer:
    rows: tuple[Inner, ...]
    names: frozenset[str] | None = None


class Row(BoundedModel):
    model_config = ConfigDict(extra="forbid")

    numbers: list[int]


class Document(BoundedModel):
    rows: tuple[Row, ...]


def errors_of(kind: object, text: str) -> list[tuple[int | str, ...]]:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_json(text)
    return [one["loc"] for one in describe_errors(refused.value)]


def test_a_list_ends_at_its_first_wrong_item_at_any_depth():
    found = errors_of(
        Annotated[Outer, BOUNDED],
        '{"rows": [{"numbers": ["", ""], "by_name": {"a": "", "b": ""}}, 1], "names": [1, 2]}',
    )
    assert found == [
        ("rows", 0, "numbers", 0),
        ("rows", 0, "by_name", "a"),
        ("names", 0),
    ]
    text = '{"rows": [{"numbers": ["", ""], "x": 1}, 1]}'
    assert errors_of(Document, text) == [("rows", 0, "numbers", 0), ("rows", 0, "x")]


def test_too_many_unknown_keys_are_counted(monkeypatch: pytest.MonkeyPatch):
    text = '{"numbers": [], "a": 1, "b": 2, "c": 3}'
    assert len(errors_of(Row, text)) == 3
    monkeypatch.setattr(bounded_errors, "MAX_ERRORS", 2)
    assert errors_of(Row, text) == [()]
