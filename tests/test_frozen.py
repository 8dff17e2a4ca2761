"""Names that are stored, matched or turned into seeds stay what they are.

Files of earlier audits, plans of users and the results of a seed all depend on them. New names
may be added; frozen.json is then written anew by `python -m tests.test_frozen`.
"""

import ast
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from overheard.core.mechanism import Site
from overheard.core.parties import COHORT, SERVER, client, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.findings.audit import Audit
from overheard.findings.comparison import Comparison
from overheard.findings.document_rows import (
    EpsilonRow,
    EpsilonVerdict,
    RefusalRow,
    RunRow,
    SummaryRow,
)
from overheard.findings.finding import Cell
from overheard.findings.threat_results import Verdict
from overheard.gate.policy import Policy
from overheard.gate.verdict import Status
from overheard.learning.models.mlp import Mlp
from overheard.papers.flip.quadruple import Quadruple
from overheard.plans.plan import Plan
from overheard.plans.registries import QUESTIONS, REGISTRIES
from overheard.report.exports import as_json
from overheard.simulation.chunk import Chunk
from overheard.simulation.virtual_client import VirtualClient

HERE = Path(__file__).with_name("frozen.json")

FINDINGS_KEYS: list[str] = json.loads(
    HERE.with_name("frozen_findings.json").read_text(encoding="utf-8")
)
"""Keys of the findings of the audit `rich`."""

SOURCE = Path(__file__).parent.parent / "src" / "overheard"

STORED = {
    "recipe": Recipe,
    "chunk of virtual clients": Chunk,
    "virtual client": VirtualClient,
    "quadruple": Quadruple,
    "cell": Cell,
}
"""Dataclasses whose repr is part of a file's name, of a key or of a seed."""

READ = {"summary": SummaryRow, "refusal": RefusalRow, "run": RunRow, "epsilon": EpsilonRow}
"""Entries of findings.json that a gate reads."""

TASK = Task((4,), ("a", "b"))

WORDS = {
    "epsilon": EpsilonVerdict,
    "exposure": Verdict,
    "comparison": Comparison,
    "rule": Status,
}


@cache
def names_now() -> dict[str, Any]:
    """Everything that is frozen, as it is now."""
    return {
        "parts": {
            kind.name: {
                name: [part.__name__, *(field.name for field in fields(part))]
                for name, part in sorted(kind.plugins().items())
            }
            for kind in REGISTRIES
        },
        "scores of questions": {
            name: sorted(part.measures) for name, part in sorted(QUESTIONS.plugins().items())
        },
        "keys of plans": sorted(set(properties(Plan.model_json_schema()))),
        "keys of policies": sorted(set(properties(Policy.model_json_schema()))),
        "fields of what is stored": {
            name: [kept.__name__, *(field.name for field in fields(kept))]
            for name, kept in STORED.items()
        },
        "keys of entries that are read": {
            name: sorted(entry.model_fields) for name, entry in READ.items()
        },
        "verdicts": {name: list(get_args(words)) for name, words in WORDS.items()},
        "sites of defenses": list(get_args(Site)),
        "parties": [SERVER, COHORT, client(3), shadow_device(2)],
        "seeds": sorted(set(seed_names())),
        "weights of a perceptron": [
            name for name, _ in Mlp(hidden=(3,)).build(TASK).named_parameters()
        ],
    }


def properties(schema: dict[str, Any]) -> Iterator[str]:
    """The keys of every table of a JSON schema."""
    for table in (schema, *schema.get("$defs", {}).values()):
        yield from table.get("properties", {})


def seed_names() -> Iterator[str]:
    """Every literal text in a call of `Seed.child`."""
    for path in sorted(SOURCE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "child"
            ):
                for given in call.args:
                    if isinstance(given, ast.Constant) and isinstance(given.value, str):
                        yield given.value


def keys_in(value: Any) -> set[str]:
    """Every key of a JSON document, however deep, but those of the plan."""
    if isinstance(value, dict):
        inner = (keys_in(one) for key, one in value.items() if key != "plan")
        return set(value).union(*inner)
    return set().union(*map(keys_in, value)) if isinstance(value, list) else set()


FROZEN: dict[str, Any] = json.loads(HERE.read_text(encoding="utf-8")) if HERE.exists() else {}


def missing(frozen: Any, now: Any) -> list[Any]:
    """What is frozen and not there now, however deep."""
    if isinstance(frozen, dict):
        return [
            name if name not in now else {name: lost}
            for name, inner in frozen.items()
            if name not in now or (lost := missing(inner, now[name]))
        ]
    return [name for name in frozen if name not in now]


def test_findings_keep_their_keys(rich: Audit) -> None:
    document = json.loads(as_json(rich))
    assert missing(FINDINGS_KEYS, keys_in(document)) == []


@pytest.mark.parametrize("group", FROZEN)
def test_no_stored_name_is_lost(group: str) -> None:
    assert missing(FROZEN[group], names_now()[group]) == []


def test_every_stored_name_is_on_record() -> None:
    assert names_now() == FROZEN, "run `python -m tests.test_frozen` to add names"


def test_a_lost_name_is_noticed() -> None:
    now = deepcopy(names_now())
    del now["parts"]["attacks"]["lira"]
    now["parts"]["attacks"]["decaf"].remove("solver")
    assert missing(FROZEN, now) == [{"parts": [{"attacks": [{"decaf": ["solver"]}, "lira"]}]}]


if __name__ == "__main__":
    HERE.write_text(json.dumps(names_now(), indent=1) + "\n", encoding="utf-8")
