"""Which attacks, scorers, defenses ... a reference reaches, read off its files."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

Coverage = dict[str, dict[str, int]]


def coverage(out: Path) -> Coverage:
    """How often each part is reached: attacks and scorers by findings, others by plans."""
    names: dict[str, list[str]] = json.loads((out / "parts.json").read_text(encoding="utf-8"))
    documents = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((out / "audits").glob("*/findings.json"))
    ]
    found, asked, named, refused = Counter(), Counter(), Counter(), Counter()
    for document in documents:
        for finding in document["findings"]:
            found[_attack(finding)] += 1
            asked[finding["question"]] += 1
        refused.update(map(_attack, document["refusals"]))
        named.update(_kinds(document["plan"]))
    models = json.loads((out / "models.json").read_text(encoding="utf-8"))
    claims = {path.stem for path in (out / "claims").glob("*.json")}
    reached = {kind: {name: named[name] for name in some} for kind, some in names.items()}
    return reached | {
        "attacks: findings": {name: found[name] for name in names["attacks"]},
        "attacks: refusals": {name: refused[name] for name in names["attacks"]},
        "attacks: claims": {name: int(name in claims) for name in names["attacks"]},
        "models: built alone": {name: int(name in models) for name in names["models"]},
        "scorers": {name: asked[name] for name in names["scorers"]},
    }


def table(covered: Coverage) -> str:
    """A line a kind: how many of its parts are reached, and which are not."""
    lines = []
    for kind, counts in sorted(covered.items()):
        missing = [name for name, count in counts.items() if not count]
        rest = f"; not: {', '.join(missing)}" if missing else ""
        lines.append(f"{kind}: {len(counts) - len(missing)} of {len(counts)}{rest}")
    return "\n".join(lines)


def _attack(told: dict[str, str]) -> str:
    """The file's name of an attack, of what a plan calls it with its settings."""
    first = re.match(r"\w+", told["attack"])
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
