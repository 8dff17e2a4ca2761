"""Prints all that is known of one plugin: what it does, its facts and its settings."""

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from overheard.cli.terminal import escaped_text
from overheard.core.errors import PlanError
from overheard.plans.plugin_facts import plugin_facts
from overheard.plans.registries import REGISTRIES
from overheard.plans.schema.described_schema import JsonSchema
from overheard.plans.schema.docstrings import read_description
from overheard.plans.schema.key_texts import range_text, toml_value, type_text
from overheard.plans.schema.plan_schema import plugin_tables


def print_details(kind: str, name: str, console: Console) -> None:
    """Print one plugin of a kind.

    Raises:
        PlanError: if plans can name no such plugin.

    """
    registry = next((one for one in REGISTRIES if one.name == kind), None)
    if registry is None:
        raise PlanError(f"{kind} have no details: leave out {name!r}")
    plugin = registry.plugins().get(name)
    if plugin is None:
        raise PlanError(
            f"no {name!r} among the {kind}: `overheard list {kind}` prints their names"
        )
    origin = registry.origin(name)
    table = plugin_tables().get(f"{kind}.{name}")
    settings = table.keys if table is not None else {}
    console.print(Text(name, style="bold"))
    lines = [
        *read_description(plugin).splitlines(),
        "",
        *(f"{heading}: {text}" for heading, text in plugin_facts(plugin).items()),
        f"Source: {plugin.source}",
        *([] if origin is None else [f"From: {origin}"]),
        *(["", "Settings"] if settings else []),
    ]
    console.print(Padding(Group(*map(escaped_text, lines)), (0, 0, 0, 4)))
    for key, schema in settings.items():
        console.print(Padding(_setting(key, schema), (0, 0, 0, 6)))


def _setting(name: str, schema: JsonSchema) -> Group:
    default = f" = {toml_value(schema['default'])}" if _has_default(schema) else ""
    holds = "; ".join(filter(None, (type_text(schema), range_text(schema))))
    lines = [escaped_text(f"{schema['description']} ({holds.replace('`', '')})")]
    if not _has_default(schema) and "examples" in schema:
        lines.append(escaped_text(f"Example: {name} = {toml_value(schema['examples'][0])}"))
    return Group(Text(f"{name}{default}", style="cyan"), Padding(Group(*lines), (0, 0, 0, 4)))


def _has_default(schema: JsonSchema) -> bool:
    return schema.get("default") is not None
