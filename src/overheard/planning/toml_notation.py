"""Writes plugins, settings and texts in the notation of plans."""

import json
from dataclasses import fields

from overheard.plans.plugin_field import plugin_label


def plan_value(plugin: object) -> str:
    """Return a plugin as a plan names it: by its name, or as an inline table of TOML.

    The table has the settings that differ from the defaults.
    """
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
    """Return a text in quotes, of ASCII alone; all other characters are escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(one if " " <= one <= "~" else _escape(ord(one)) for one in quoted)


def _escape(code: int) -> str:
    # JSON writes a character beyond these as two, which TOML does not allow.
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
