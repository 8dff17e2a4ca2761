"""Writes the software bill of materials of Overheard: CycloneDX 1.6, from the locks.

`python locks/sbom.py FILE` lists each package of `all.txt` with the SHA-256 of its files, and
torch, whose build depends on the machine. Packages of `audit.txt` are required, and the others
optional. The same locks give the same bytes.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

LOCKS = Path(__file__).parent
ROOT = LOCKS.parent

REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]+?))? *\\?$", re.MULTILINE)
"""A name, a version, and the machines that need it."""

HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill_of_materials() -> dict[str, Any]:
    """Return the bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {name for name, _, _, _ in _locked("audit.txt")} | {"torch"}
    (torch,) = set(re.findall(r"torch==([\w.]+)", (ROOT / "Makefile").read_text("utf-8")))
    packages = sorted([*_locked("all.txt"), ("torch", torch, "", ())])
    components = [
        _component(name, version, machines, digests, is_required=name in required)
        for name, version, machines, digests in packages
    ]
    subject = {
        "type": "application",
        "bom-ref": _package_url(project["name"], project["version"]),
        "name": project["name"],
        "version": project["version"],
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
        "purl": _package_url(project["name"], project["version"]),
    }
    content = json.dumps([subject, components])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def _locked(lock: str) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return name, version, machines and digests of each package in a lock."""
    text = (LOCKS / lock).read_text(encoding="utf-8")
    found = list(REQUIREMENT.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)]
    return [
        (one[1], one[2], one[3] or "", tuple(HASH.findall(text[one.end() : end])))
        for one, end in zip(found, ends, strict=True)
    ]


def _component(
    name: str, version: str, machines: str, digests: tuple[str, ...], *, is_required: bool
) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _package_url(name, version) + (f"#{machines}" if machines else ""),
        "name": name,
        "version": version,
        "scope": "required" if is_required else "optional",
        "purl": _package_url(name, version),
    }
    if digests:
        component["hashes"] = [{"alg": "SHA-256", "content": digest} for digest in digests]
    if machines:
        component["properties"] = [{"name": "overheard:machines", "value": machines}]
    return component


def _package_url(name: str, version: str) -> str:
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(bill_of_materials(), indent=1) + "\n", "utf-8")
