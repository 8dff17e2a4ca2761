"""The files of golden results, with a line for each row."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.golden.changes import Alike, line_changes, value_changes
from tests.golden.judgements import Judgement
from tests.golden.rounding import Table

HERE = Path(__file__).parent

CLAIMS, JUDGEMENTS = HERE / "claims", HERE / "judgements"


def as_text(values: Mapping[str, Table]) -> str:
    """Return tables as JSON, with one line for each row.

    >>> print(as_text({"verdicts": {"a": {"p": 0.5}, "b": None}}), end="")
    {
     "verdicts": {
      "a": {"p": 0.5},
      "b": null
     }
    }
    """
    sections = []
    for name, rows in values.items():
        lines = ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()
        )
        sections.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def write_claims(name: str, claims: Mapping[str, Table]) -> None:
    """Write the claims of a small audit."""
    CLAIMS.mkdir(exist_ok=True)
    (CLAIMS / f"{name}.json").write_text(as_text(claims), encoding="utf-8")


def read_claims(name: str) -> Mapping[str, Table]:
    """Read the stored claims of a small audit."""
    tables: Mapping[str, Table] = json.loads((CLAIMS / f"{name}.json").read_text("utf-8"))
    return tables


def write_judgement(name: str, judgement: Judgement) -> None:
    """Write what follows from an audit: a file of values and a file of the page's text."""
    JUDGEMENTS.mkdir(exist_ok=True)
    (JUDGEMENTS / f"{name}.json").write_text(as_text(judgement.values), encoding="utf-8")
    (JUDGEMENTS / f"{name}.txt").write_text(judgement.page, encoding="utf-8")


def judgement_changes(name: str, judgement: Judgement) -> list[str]:
    """Return a line for each value and line of the page that differs from the stored one."""
    values, page = (JUDGEMENTS / f"{name}{end}" for end in (".json", ".txt"))
    stored = json.loads(values.read_text(encoding="utf-8"))
    return [
        *value_changes(stored, json.loads(as_text(judgement.values))),
        *line_changes(page.read_text(encoding="utf-8"), judgement.page, "page"),
    ]


def claim_changes(name: str, claims: Mapping[str, Table], are_alike: Alike) -> list[str]:
    """Return a line for each claimed value and refusal that differs from the stored one."""
    new = json.loads(as_text(claims))
    return list(value_changes(read_claims(name), new, are_alike=are_alike))
