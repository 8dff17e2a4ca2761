"""Reads what a docstring says of a class and of each of its settings."""

import inspect
import re
from collections.abc import Mapping

_SECTION = re.compile(r"^(?:Args|Returns|Raises):$", re.MULTILINE)

_ENTRY = re.compile(r"^ {4}(\w+): ?(.*(?:\n(?: {5,}.*| *$))*)", re.MULTILINE)


def described_class(kind: type) -> str:
    """Return the paragraphs before the first section, such as `Args:`; "" without a docstring.

    >>> from overheard.plans.release_plan import ReleasePlan
    >>> described_class(ReleasePlan)
    'Who answers for the results of an audit, and what they are for; all optional.'
    """
    return _SECTION.split(inspect.cleandoc(kind.__doc__ or ""), maxsplit=1)[0].strip()


def described_settings(kind: type) -> Mapping[str, str]:
    """Return the text of each entry under `Args:`, on one line, parent classes included."""
    found = dict[str, str]()
    for one in reversed(kind.__mro__):
        _, _, arguments = inspect.cleandoc(vars(one).get("__doc__") or "").partition("Args:\n")
        entries = _SECTION.split(arguments, maxsplit=1)[0]
        found |= {name: " ".join(text.split()) for name, text in _ENTRY.findall(entries)}
    return found
