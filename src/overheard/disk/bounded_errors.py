"""Keeps the errors of a document few, as a million wrong items would fill the memory.

An error takes a kilobyte, and a wrong item of a list two bytes of the file. Pydantic can end
tables early from version 2.12 on.
"""

from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails

MAX_ERRORS = 10_000
"""The most errors that are described."""

LISTS = frozenset({"list", "tuple", "set", "frozenset", "dict"})
"""The types of values, as pydantic calls them, that end at their first wrong item."""


def _end_early(schema: CoreSchema, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Let each list in a schema end at its first wrong item, and return the schema."""
    pending: list[object] = [schema]
    seen = set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, list | tuple):
            pending += part
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        if part.get("type") == "definition-ref":
            pending.append(handler.resolve_ref_schema(part))
        elif part.get("type") in LISTS:
            part["fail_fast"] = True
        pending += part.values()
    return schema


class BoundedModel(BaseModel):
    """A model in which each list, and each table of any keys, ends at its first wrong item."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls,
        source: Any,  # Any: whatever type pydantic reads.
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        """Return the schema of the model, changed so."""
        return _end_early(handler(source), handler)


class _Bounded:
    def __get_pydantic_core_schema__(
        self,
        source: Any,  # Any: whatever type pydantic reads.
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        return _end_early(handler(source), handler)


BOUNDED = _Bounded()
"""Marks a type that is no model, such as `Annotated[Manifest, BOUNDED]`, to be read so."""


def describe_errors(error: ValidationError) -> list[ErrorDetails]:
    """Return what is wrong; if that is too much to be described, one error that says so."""
    count = error.error_count()
    if count <= MAX_ERRORS:
        return error.errors(include_url=False)
    return [
        ErrorDetails(
            type="too_many", loc=(), msg=f"it has {count} mistakes, such as keys", input=None
        )
    ]
