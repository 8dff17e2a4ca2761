"""The JSON schema of policies: each key with description, range, default and example."""

import tomllib
from importlib.resources import files

from overheard.gate.policy import Policy
from overheard.plans.schema.described_schema import JsonSchema, described_schema
from overheard.plans.schema.plan_schema import add_examples, schema_tables


def policy_schema() -> JsonSchema:
    """Return the JSON schema of policies; every key has a description and an example."""
    schema = described_schema(Policy)
    text = files("overheard.gate").joinpath("policy_examples.toml").read_text("utf-8")
    examples = tomllib.loads(text)
    for table in schema_tables(schema):
        add_examples(table, examples.get(table.path, {}) if table.path else examples)
    return schema
