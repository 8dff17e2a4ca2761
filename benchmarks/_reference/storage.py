"""Results of an audit as plain files, without times and versions."""

import csv
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

VERSION_KEYS = ("overheard", "torch", "python")
"""Keys of a manifest with versions."""


def store_audit(folder: Path, out: Path) -> None:
    """Store findings as document and table, the report, and digests of transcripts."""
    out.mkdir(parents=True, exist_ok=True)
    findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    versions = findings.pop("versions")
    # Parsed, so that a new setting with its default counts as an added key.
    findings["plan"] = tomllib.loads(findings["plan"])
    store_json(findings, out / "findings.json")
    with (folder / "findings.csv").open(encoding="utf-8", newline="") as file:
        store_json(list(csv.DictReader(file)), out / "findings.csv.json")
    page = (folder / "report.html").read_text(encoding="utf-8")
    (out / "report.html").write_text(_without_versions(versions, page), encoding="utf-8")
    runs = {path.name: _run(path) for path in sorted((folder / "runs").glob("*"))}
    if runs:
        store_json(runs, out / "runs.json")


def store_digests(folder: Path, out: Path, pattern: str) -> None:
    """Store the digest of each file."""
    store_json({path.name: _digest(path) for path in sorted(folder.glob(pattern))}, out)


def store_json(document: object, out: Path) -> None:
    """Store a document with sorted keys, one entry per line."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _without_versions(versions: Mapping[str, str], page: str) -> str:
    for version in versions.values():
        page = page.replace(f"<bdi>{version}</bdi>", "<bdi>VERSION</bdi>")
    # One tag per line, so that differences are shown by tag.
    return page.replace("><", ">\n<")


def _run(folder: Path) -> dict[str, object]:
    """Return manifest, ground truth, and every message with digests of its files."""
    transcript = folder / "transcript"
    manifest = _read(transcript / "manifest.json")
    for key in VERSION_KEYS:
        del manifest[key]
    return {
        "manifest": manifest,
        "truth": _read(folder / "truth.json"),
        "rounds": {
            path.name: _round(path) for path in sorted((transcript / "rounds").iterdir())
        },
    }


def _round(folder: Path) -> dict[str, object]:
    lines = (folder / "messages.jsonl").read_text(encoding="utf-8").splitlines()
    files = sorted(folder.glob("*.safetensors"))
    return {
        "messages": [json.loads(line) for line in lines],
        "files": {path.name: _digest(path) for path in files},
    }


def _read(path: Path) -> dict[str, object]:
    document: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
