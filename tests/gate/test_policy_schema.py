"""Every key of a policy has an example, and a policy accepts it."""

import json
from typing import Any

import pytest

from overheard.gate.policy import Policy
from overheard.gate.policy_schema import policy_schema
from overheard.plans.schema.plan_schema import nested_table, schema_tables

TABLES = {table.path: table for table in schema_tables(policy_schema())}

LIMITS = {
    "leaks": ("no_better_than", "gain_at_most", "grows_at_most"),
    "epsilons": ("guaranteed_at_most", "proven_at_most", "claims_hold"),
    "costs": ("accuracy_at_least", "bytes_at_most", "seconds_at_most"),
}
"""Limits of which a rule sets one."""

EXAMPLES = [
    (path, name)
    for path, table in TABLES.items()
    for name, key in table.keys.items()
    if nested_table(key) is None
]


@pytest.mark.parametrize(("path", "name"), EXAMPLES)
def test_a_policy_accepts_the_example_of_every_key(path: str, name: str):
    keys = TABLES[path].keys
    rule = {one: keys[one]["examples"][0] for one in TABLES[path].required | {name}}
    if path in LIMITS and name not in LIMITS[path]:
        limit = LIMITS[path][0]
        rule[limit] = keys[limit]["examples"][0]
    # Any: a policy holds values of any type.
    policy: dict[str, Any] = {"verdicts": [{"name": "a rule"}]}
    if path == "exceptions":
        policy["verdicts"] = [{"name": TABLES["exceptions"].keys["rule"]["examples"][0]}]
    policy |= {path: [rule]} if path else rule
    Policy.model_validate_json(json.dumps(policy))
