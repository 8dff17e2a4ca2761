"""The attacks, scorers, defenses and other parts that a reference uses."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

Coverage = dict[str, dict[str, int]]


def coverage(out: Path) -> Coverage:
    """Count uses of each part: attacks and scorers by findings, others by plans."""
    names: dict[str, list[str]] = json.loads((out / "parts.json").read_text(encoding="utf-8"))
    documents = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((out / "audits").glob("*/findings.json"))
    ]
    findings, scored, planned, refused = Counter(), Counter(), Counter(), Counter()
    for document in documents:
        for finding in document["findings"]:
            findings[_attack(finding)] += 1
            scored[finding["question"]] += 1
        refused.update(map(_attack, document["refusals"]))
        planned.update(_kinds(document["plan"]))
    models = json.loads((out / "models.json").read_text(encoding="utf-8"))
    claims = {path.stem for path in (out / "claims").glob("*.json")}
    reached = {kind: {name: planned[name] for name in parts} for kind, parts in names.items()}
    return reached | {
        "attacks: findings": {name: findings[name] for name in names["attacks"]},
        "attacks: refusals": {name: refused[name] for name in names["attacks"]},
        "attacks: claims": {name: int(name in claims) for name in names["attacks"]},
        "models: built alone": {name: int(name in models) for name in names["models"]},
        "scorers": {name: scored[name] for name in names["scorers"]},
    }


def table(used: Coverage) -> str:
    """Return one line per kind: the number of used parts, and the unused ones."""
    lines = []
    for kind, counts in sorted(used.items()):
        missing = [name for name, count in counts.items() if not count]
        unused = f"; not: {', '.join(missing)}" if missing else ""
        lines.append(f"{kind}: {len(counts) - len(missing)} of {len(counts)}{unused}")
    return "\n".join(lines)


def _attack(finding: dict[str, str]) -> str:
    """Return the part name of an attack without its settings."""
    first = re.match(r"\w+", finding["attack"])
    assert first is not None
    return first[0]


def _kinds(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("kind"), str):
            yield value["kind"]
        for inner in value.values():
            yield from _kinds(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _kinds(inner)
