"""What is kept of an audit's folder: all but clocks and versions, as plain files."""

import csv
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

MAKERS = ("overheard", "torch", "python")
"""Keys of a manifest that name versions."""


def keep_audit(folder: Path, out: Path) -> None:
    """Findings as document and as table, the page, and the transcripts of its runs."""
    out.mkdir(parents=True, exist_ok=True)
    findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    versions = findings.pop("versions")
    # As tables: a setting that is new, and as it was by default, is an added key.
    findings["plan"] = tomllib.loads(findings["plan"])
    keep_json(findings, out / "findings.json")
    with (folder / "findings.csv").open(encoding="utf-8", newline="") as file:
        keep_json(list(csv.DictReader(file)), out / "findings.csv.json")
    page = (folder / "report.html").read_text(encoding="utf-8")
    (out / "report.html").write_text(_without(versions, page), encoding="utf-8")
    runs = {path.name: _run(path) for path in sorted((folder / "runs").glob("*"))}
    if runs:
        keep_json(runs, out / "runs.json")


def keep_files(folder: Path, out: Path, pattern: str) -> None:
    """The digest of each file."""
    keep_json({path.name: _digest(path) for path in sorted(folder.glob(pattern))}, out)


def keep_json(document: object, out: Path) -> None:
    """A document with its keys in order, an entry a line."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _without(versions: Mapping[str, str], page: str) -> str:
    for version in versions.values():
        page = page.replace(f"<bdi>{version}</bdi>", "<bdi>VERSION</bdi>")
    # A tag a line, so that a difference is not lost in a whole drawing.
    return page.replace("><", ">\n<")


def _run(folder: Path) -> dict[str, object]:
    """Manifest, truth, and every message with the digest of what it holds."""
    transcript = folder / "transcript"
    manifest = _read(transcript / "manifest.json")
    for key in MAKERS:
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
