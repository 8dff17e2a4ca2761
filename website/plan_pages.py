"""The pages on plans and policies: every key with its meaning, range, default and example."""

from overheard.gate.policy_schema import policy_schema
from overheard.plans.schema.described_schema import JsonSchema
from overheard.plans.schema.key_texts import range_text, toml_value, type_text
from overheard.plans.schema.plan_schema import (
    PlanTable,
    nested_table,
    plan_tables,
    plugin_registry,
    schema_tables,
)
from website.site_markdown import plain, sentence

_PLAN_HEAD = """\
# Plan reference

Look up here what each key of a plan means, what it may hold, and what it is if you leave it
out. A plan is a text file in [TOML](https://toml.io). `overheard audit plan.toml` runs it.

- **An unknown key is an error**, and so is a value of the wrong type or out of range. Overheard
  tells all of them at once, each with its place.
- **Leave out what you do not need.** Only keys marked *required* must be given.
- **Plugins**, such as an attack or a model, are given by name (`"decaf"`), or as a table with
  the name and settings (`{ kind = "decaf", steps = 500 }`). Their pages list the settings.
- Each example shows one key. No plan holds them all.
- `overheard schema > plan.schema.json` writes the same for editors. A [worked
  plan](plan-for-a-recording.md) is a better start than this page.

The tables of a plan:

"""

_POLICY_HEAD = """\
# Policy reference

Look up here what each key of a policy means. A policy is a TOML file with the rules that the
findings of an audit must keep. The command `overheard check audit/findings.json --policy
policy.toml` judges them. How to choose rules is told in [a gate for pipelines](check.md).
`overheard schema --policy` writes the same for editors.

The tables of a policy:

"""


def plan_page() -> str:
    """Return the page on all keys of a plan."""
    return _PLAN_HEAD + _tables(plan_tables(), "The top of a plan")


def policy_page() -> str:
    """Return the page on all keys of a policy."""
    return _POLICY_HEAD + _tables(schema_tables(policy_schema()), "The top of a policy")


def _tables(tables: tuple[PlanTable, ...], top: str) -> str:
    contents = "".join(
        f"- [{_title(table, top)}](#{_table_anchor(table.path)}): "
        f"{plain(_first_sentence(table.schema))}\n"
        for table in tables
    )
    return contents + "".join(_section(table, top) for table in tables)


def _section(table: PlanTable, top: str) -> str:
    head = f"\n## {_title(table, top)} {{#{_table_anchor(table.path)}}}\n\n"
    text = plain(table.schema.get("description", ""))
    return head + text + "\n" + "".join(_key(table, *one) for one in table.keys.items())


def _key(table: PlanTable, name: str, schema: JsonSchema) -> str:
    path = ".".join(filter(None, (table.path, name)))
    holds = "; ".join(filter(None, (type_text(schema), range_text(schema))))
    facts = [
        f"Holds: {holds}{_more(path, schema)}",
        "**required**" if name in table.required else f"Default: {_default(schema)}",
    ]
    return (
        f"\n### `{name}` {{#{_anchor(path)}}}\n\n"
        f"{plain(sentence(schema.get('description', '')))}\n\n"
        + "".join(f"- {fact}\n" for fact in facts)
        + f"\n```toml\n{_example(path, name, schema)}\n```\n"
    )


def _more(path: str, schema: JsonSchema) -> str:
    """Return where the plugins that a key names, or the keys of its table, are listed."""
    registry = plugin_registry(schema)
    if registry is not None:
        return f" (see [{registry}]({registry}.md))"
    if nested_table(schema) is not None:
        return f" (see [`{path}`](#{_table_anchor(path)}))"
    return ""


def _default(schema: JsonSchema) -> str:
    default = schema.get("default")
    if nested_table(schema) is not None or default in (None, []):
        return "left out"
    return f"`{toml_value(default)}`"


def _example(path: str, name: str, schema: JsonSchema) -> str:
    if nested_table(schema) is not None:
        return f"[[{path}]]" if schema.get("type") == "array" else f"[{path}]"
    return f"{name} = {toml_value(schema['examples'][0])}"


def _title(table: PlanTable, top: str) -> str:
    if not table.path:
        return top
    return f"`[[{table.path}]]`" if table.is_list else f"`[{table.path}]`"


def _anchor(path: str) -> str:
    return path.replace(".", "-")


def _table_anchor(path: str) -> str:
    return f"table-{_anchor(path)}" if path else "table"


def _first_sentence(schema: JsonSchema) -> str:
    first = schema.get("description", "").split("\n\n", maxsplit=1)[0]
    return " ".join(first.split())
