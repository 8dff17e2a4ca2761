"""Finds the models and defenses of a plan that a recording states as text.

Whoever made a recording chose its texts. So nothing that they name is imported or opened: a
setting that is a name of code or of a file is refused, and a network of a user's own is only
proposed.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, final

from overheard.core.custom_code.reference import REFERENCE, outside_settings
from overheard.core.errors import AuditError
from overheard.core.plugin_registry import PluginRegistry
from overheard.disk.reading import parse_expression, parse_literal
from overheard.learning.model import Model
from overheard.plans.plugin_field import settings_model
from overheard.plans.registries import MODELS

LONGEST_TEXT = 100_000
"""Most characters of a text that is parsed, which takes some hundred bytes for each."""

LARGEST_NUMBER = 10**6
"""The largest whole number that a recording may set: no layer of a network is wider."""

MOST_ITEMS = 1000
"""Most items of a setting: no network has more layers, or more tensors that stay at home."""

T = TypeVar("T")


def parse_plugin(text: str, registry: PluginRegistry[T]) -> T | None:
    """Return the plugin whose settings a text states, such as "Mlp(hidden=(64,))".

    The text is parsed, never run. Returns None if it states no plugin of the registry, or has a
    setting that a plan could not have, that names code or a file, or that is too large. A
    plugin of another package may import what any text names, so it gets no text at all.
    """
    by_class = {plugin.__name__: plugin for plugin in registry.plugins().values()}
    try:
        stated = _read_call(text)
        if stated is None:
            return None
        plugin = by_class[stated.name]
        outside = outside_settings(plugin)
        if not all(_is_harmless(one, name in outside) for name, one in stated.settings.items()):
            return None
        name = str(getattr(plugin, "name"))  # noqa: B009
        settings_model(name, plugin).model_validate({"kind": name, **stated.settings})
        return plugin(**stated.settings)
    except (*_UNREADABLE, KeyError, AuditError):
        return None


def parse_model(text: str) -> Model | None:
    """Return the built-in model that a recording states, by its name or with its settings."""
    plugins = MODELS.plugins()
    try:
        found = plugins[text]() if text in plugins else parse_plugin(text, MODELS)
    except (TypeError, ValueError, AuditError):
        return None
    return found if found is not None and MODELS.origin(found.name) is None else None


_UNREADABLE = (SyntaxError, TypeError, ValueError, RecursionError, MemoryError)
"""What a text that is no call of a class may raise."""


def proposed_network(text: str) -> str | None:
    """Return the "package.module:name" of a user's own network that a recording states.

    It is for people to read, and never to be imported. None = the text names no code.

    >>> proposed_network("mine.task:Net"), proposed_network("Own(reference='mine.task:Net')")
    ('mine.task:Net', 'mine.task:Net')
    """
    if REFERENCE.fullmatch(text):
        return text
    try:
        stated = _read_call(text)
    except _UNREADABLE:
        return None
    reference = None if stated is None else stated.settings.get("reference")
    is_code = isinstance(reference, str) and REFERENCE.fullmatch(reference)
    return str(reference) if is_code else None


@final
@dataclass(frozen=True, slots=True)
class _StatedCall:
    """A class and the settings with which a text calls it."""

    name: str
    settings: Mapping[str, object]


def _read_call(text: str) -> _StatedCall | None:
    """Return the call that a text consists of, if all its settings are named literals.

    Raises:
        SyntaxError: if it is no expression, or a setting is no literal.
        ValueError: if it is too long.

    """
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"has more than {LONGEST_TEXT} characters")
    call = parse_expression(text)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        return None
    settings = {str(keyword.arg): parse_literal(keyword.value) for keyword in call.keywords}
    return _StatedCall(call.func.id, settings)


def _is_harmless(setting: object, is_outside: bool) -> bool:
    """Return whether a setting cannot make a plugin import or open anything, or be huge."""
    if isinstance(setting, tuple | list):
        return len(setting) <= MOST_ITEMS and all(
            _is_harmless(one, is_outside) for one in setting
        )
    if isinstance(setting, str):
        return not (setting and is_outside) and not REFERENCE.fullmatch(setting)
    if isinstance(setting, int):
        return abs(setting) <= LARGEST_NUMBER
    return setting is None or isinstance(setting, float)
