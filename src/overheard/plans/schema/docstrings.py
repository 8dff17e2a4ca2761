"""Reads what a docstring says of a class or function and of each of its settings."""

import inspect
import re
from collections.abc import Mapping
from types import FunctionType

_SECTION = re.compile(r"^(?:Args|Returns|Raises):$", re.MULTILINE)

_ENTRY = re.compile(r"^ {4}(\w+): ?(.*(?:\n(?: {5,}.*| *$))*)", re.MULTILINE)


def read_description(documented: type | FunctionType) -> str:
    """Return the paragraphs before the first section, such as `Args:`; "" without a docstring.

    >>> from overheard.plans.release_plan import ReleasePlan
    >>> read_description(ReleasePlan)
    'Who answers for the results of an audit, and what they are for; all optional.'
    """
    return _SECTION.split(inspect.cleandoc(documented.__doc__ or ""), maxsplit=1)[0].strip()


def read_arguments(documented: type | FunctionType) -> Mapping[str, str]:
    """Return the text of each entry under `Args:`, on one line, parent classes included."""
    found = dict[str, str]()
    for one in reversed(getattr(documented, "__mro__", (documented,))):
        text = one.__doc__ if isinstance(one, FunctionType) else vars(one).get("__doc__")
        _, _, arguments = inspect.cleandoc(text or "").partition("Args:\n")
        entries = _SECTION.split(arguments, maxsplit=1)[0]
        found |= {name: " ".join(lines.split()) for name, lines in _ENTRY.findall(entries)}
    return found
