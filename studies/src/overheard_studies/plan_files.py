"""Plans of studies that are files: a base, what audits change, and what a quick run changes."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import tomli_w

from overheard.plans.plan import Plan, parse_plan
from overheard_studies.study import Panel, Read

BASE = "OVERHEARD_STUDIES_BASE"
"""The variable that names pretrained weights, as `own.pretrain` writes them; without it a
transformer starts from fresh weights."""

# Any: values of a TOML file.
Table = Mapping[str, Any]


def read_panels(name: str, read: Read) -> tuple[Panel, ...]:
    """Return the audits of a file in the folder `plans`.

    The file has a plan (`base`), and by their keys the audits: each has a `name` and the parts
    of the plan that it changes. `quick` has what a quick run changes in all of them; an audit
    may have a `quick` of its own. A list, and a table with another `kind`, replace those of the
    base; other tables are merged.

    Args:
        name: name of the file.
        read: reads the values of each audit.

    """
    return tuple(_panels(name, read))


def _panels(name: str, read: Read) -> Iterator[Panel]:
    document = _document(name)
    for key, changes in document["audits"].items():
        full = merge(document["base"], changes)
        quick = merge(full, merge(document["quick"], changes.get("quick", {})))
        yield Panel(key, changes["name"], partial(_build, name, (full, quick)), read)


def _build(name: str, sizes: tuple[Table, Table], quick: bool) -> Plan:
    table = {"title": sizes[quick]["name"], **sizes[quick]}
    plan = {key: value for key, value in table.items() if key not in ("name", "quick")}
    return parse_plan(tomli_w.dumps(plan), name)


def merge(table: Table, changes: Table) -> Table:
    """Return a table with changes; tables without another `kind` are merged.

    >>> merge({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 4}})
    {'a': 1, 'b': {'c': 4, 'd': 3}}
    """
    merged = dict(table)
    for key, value in changes.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping) and "kind" not in value
        merged[key] = merge(old, value) if both and old is not None else value
    return merged


@cache
def _document(name: str) -> Table:
    text = files("overheard_studies").joinpath(f"plans/{name}.toml").read_text("utf-8")
    base = Path(os.environ.get(BASE, "")).as_posix() if BASE in os.environ else ""
    return tomllib.loads(Template(text).safe_substitute(base=base))
