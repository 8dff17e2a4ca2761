"""A page for each kind of plugin: what each one does, states, needs and can be set to."""

from collections.abc import Mapping
from typing import Any

from overheard.core.plugin_registry import PluginRegistry
from overheard.plans.plugin_facts import plugin_facts
from overheard.plans.registries import (
    ALGORITHMS,
    ATTACKS,
    DATASETS,
    DEFENSES,
    DISTILLATIONS,
    MODELS,
    QUESTIONS,
    SPLITS,
)
from overheard.plans.schema.described_schema import JsonSchema
from overheard.plans.schema.docstrings import read_description
from overheard.plans.schema.key_texts import range_text, toml_value, type_text
from overheard.plans.schema.plan_schema import plugin_tables
from website.site_markdown import cell, plain, sentence, table

# Any: a registry holds plugins of any kind.
_HEADS: Mapping[PluginRegistry[Any], tuple[str, str]] = {
    ATTACKS: (
        "Attacks",
        "Look up here what each attack asks, needs and costs. A threat names its attacks: "
        '`attacks = ["decaf"]`. An attack whose needs are not met is refused, and the report '
        "says what was missing. [Scale](scale.md) has measured costs. How to add one of your "
        "own: [an attack](add-an-attack.md).",
    ),
    DEFENSES: (
        "Defenses",
        "Look up here what each defense changes, who applies it and who could skip it. An arm "
        'of a plan names its defenses: `defenses = ["local_dp"]`. What a defense promises: '
        "[threat models](threat-models.md#defenses).",
    ),
    SPLITS: (
        "Splits",
        "Look up here how the examples of a data set can be partitioned among clients. "
        '`split = { kind = "dirichlet", alpha = 0.5 }` in the table `[data]`.',
    ),
    MODELS: (
        "Models",
        'Look up here which networks a plan can name. `model = { kind = "mlp", hidden = '
        "[64] }` in the table `[training]`. A network of your own: [bring your "
        "own](bring-your-own.md#a-model).",
    ),
    DATASETS: (
        "Data sets",
        "Look up here which data a plan can name, where they come from and on which terms. "
        '`source = "digits"` in the table `[data]`. Data of your own: [bring your '
        "own](bring-your-own.md#data).",
    ),
    ALGORITHMS: (
        "Algorithms",
        "Look up here how the server can use updates, what clients can add to their training, "
        "and what that reveals compared with FedAvg. `algorithm = "
        '{ kind = "fed_adam", rate = 0.05 }` in the table `[training]` or in an arm. '
        "[Algorithms](federated-algorithms.md) compares them.",
    ),
    DISTILLATIONS: (
        "Distillations",
        "Look up here how clients can distil their data, in a federation that sends distilled "
        'data in place of weights. `distillation = "flip"` in an arm: [distilled '
        "data](flip.md).",
    ),
    QUESTIONS: (
        "Questions",
        "Look up here what attackers may ask. An attack answers one question, and a verdict "
        "of a report is on one question.",
    ),
}


def plugin_pages() -> dict[str, str]:
    """Return a page for each kind of plugin, by its file name."""
    tables = plugin_tables()
    settings = {path: one.keys for path, one in tables.items()}
    return {f"{one.name}.md": _page(one, *_HEADS[one], settings) for one in _HEADS}


def _page(
    registry: PluginRegistry[Any],
    title: str,
    head: str,
    settings: Mapping[str, Mapping[str, JsonSchema]],
) -> str:
    plugins = registry.plugins()
    rows = [
        (f"[`{name}`](#{name})", *_facts(plugin, registry), cell(_summary(plugin)))
        for name, plugin in plugins.items()
    ]
    # By question, for attacks; the others have a name alone.
    rows.sort(key=lambda row: row[1:-1] if registry is ATTACKS else ())
    overview = table(("name", *_columns(registry), "in short"), rows)
    sections = "".join(
        _section(registry, name, plugin, settings.get(f"{registry.name}.{name}", {}))
        for name, plugin in plugins.items()
    )
    command = f"`overheard list {registry.name}` prints this list, and `overheard list "
    return (
        f"# {title}\n\n{head}\n\n{command}{registry.name} NAME` all that stands here of one "
        f"of them.\n\n{overview}{sections}"
    )


def _columns(registry: PluginRegistry[Any]) -> tuple[str, ...]:
    """Return the headings of the facts that the overview shows."""
    columns = {"attacks": ("question", "trains"), "defenses": ("changes", "epsilon")}
    return columns.get(registry.name, ())


def _facts(plugin: type, registry: PluginRegistry[Any]) -> tuple[str, ...]:
    facts = plugin_facts(plugin)
    if registry is ATTACKS:
        question = facts["Question"].split(":", maxsplit=1)[0]
        return question, cell(plugin().training_source())
    if registry is DEFENSES:
        return cell(facts["Changes"]), cell(facts["Noise with an epsilon"])
    return ()


def _summary(plugin: type) -> str:
    return read_description(plugin).split("\n\n", maxsplit=1)[0]


# Any: a plugin is a class of any kind.
def _section(
    registry: PluginRegistry[Any],
    name: str,
    plugin: type[Any],
    settings: Mapping[str, JsonSchema],
) -> str:
    origin = registry.origin(name)
    facts = {**plugin_facts(plugin), "Source": plugin.source}
    facts |= {} if origin is None else {"From the package": str(origin)}
    lines = [f"- **{heading}:** {cell(text)}\n" for heading, text in facts.items()]
    return (
        f"\n## `{name}` {{#{name}}}\n\n{plain(read_description(plugin))}\n\n"
        + "".join(lines)
        + (f"\n{_settings(settings)}" if settings else "")
    )


def _settings(settings: Mapping[str, JsonSchema]) -> str:
    rows = [
        (
            f"`{name}`",
            cell(sentence(schema.get("description", ""))),
            cell("; ".join(filter(None, (type_text(schema), range_text(schema))))),
            _default_or_example(schema),
        )
        for name, schema in settings.items()
    ]
    return table(("setting", "meaning", "holds", "default"), rows)


def _default_or_example(schema: JsonSchema) -> str:
    default, examples = schema.get("default"), schema.get("examples", [])
    if default is not None and default != []:
        return f"`{cell(toml_value(default))}`"
    missing = "required" if "default" not in schema else "left out"
    return f"{missing}; such as `{cell(toml_value(examples[0]))}`" if examples else missing
