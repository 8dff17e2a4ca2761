"""Finds the models and defenses of a plan that a recording states as text."""

import ast
import json
from dataclasses import fields
from typing import TypeVar

from overheard.core.errors import AuditError
from overheard.core.own_code.reference import REFERENCE
from overheard.core.plugin_registry import PluginRegistry
from overheard.learning.model import Model
from overheard.plans.plugin_field import plugin_label
from overheard.plans.registries import MODELS

T = TypeVar("T")


def parse_plugin(text: str, registry: PluginRegistry[T]) -> T | None:
    """Return the plugin whose settings a text states, such as "Mlp(hidden=(64,))".

    The text is parsed, never run. Returns None if it states no plugin of the registry.
    """
    by_class = {plugin.__name__: plugin for plugin in registry.plugins().values()}
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            return None
        settings = {
            str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords
        }
        return by_class[call.func.id](**settings)
    except (SyntaxError, KeyError, TypeError, ValueError, RecursionError, AuditError):
        return None


def parse_model(text: str) -> Model | None:
    """Return the model that a recording names: its settings, its name or a reference."""
    plugins = MODELS.plugins()
    try:
        if text in plugins:
            return plugins[text]()
        if REFERENCE.fullmatch(text):
            return plugins["own"](reference=text)  # type: ignore[call-arg]
    except (TypeError, ValueError, AuditError):
        return None
    return parse_plugin(text, MODELS)


# Any plugin: its name and its settings that differ from the defaults.
def plan_value(plugin: object) -> str:
    """Return a plugin as a plan names it: by its name, or as an inline table of TOML."""
    label = plugin_label(plugin)
    name = str(getattr(plugin, "name"))  # noqa: B009
    if label == name:
        return toml_value(name)
    settings = {"kind": name} | {
        field.name: value
        for field in fields(plugin)  # type: ignore[arg-type]
        if f"{field.name}={(value := getattr(plugin, field.name))!r}" in label
        and value is not None
    }
    return toml_value(settings)


def toml_value(value: object) -> str:
    """Return a value in the notation of TOML, on one line."""
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{key} = {toml_value(one)}" for key, one in value.items()) + " }"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return toml_text(str(value))


def toml_text(text: str) -> str:
    """Return a text in quotes, with everything escaped that TOML does not allow."""
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")
