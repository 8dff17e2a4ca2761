"""How two references differ, file by file and path by path; knows nothing of overheard."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PAGE = "report.html"

LONGEST = 300
"""Characters that are shown of a value or a line."""

IGNORED = ("versions",)
"""Keys that differ from machine to machine."""

UNSAID = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """A place in a document, and what stood and stands there."""

    place: str
    before: object
    after: object

    def __str__(self) -> str:
        """Return three lines: where the two differ, the old value, the new one."""
        return f"  {self.place}\n    - {_shown(self.before)}\n    + {_shown(self.after)}"


def differences(old: Path, new: Path, *, strict: bool) -> int:
    """Print every difference; 1 if one counts, else 0."""
    for folder in (old, new):
        if not folder.is_dir():
            print(f"{folder}: no such folder")
            return 1
    before, after = _files(old), _files(new)
    counts, added = 0, 0
    for name in sorted(before.keys() - after.keys()):
        print(f"{name}: is gone")
        counts += 1
    for name in sorted(before.keys() & after.keys()):
        found, more = _of_file(before[name], after[name])
        added += more
        if found:
            counted = strict or not name.endswith(PAGE)
            counts += len(found) if counted else 0
            print(f"{name}: {len(found)} differences{'' if counted else ' (not counted)'}")
            print("\n".join(found))
    fresh = len(after.keys() - before.keys())
    print(
        f"{len(before)} files compared: {counts} differences; {added} keys and {fresh} files "
        "were added"
    )
    return int(counts > 0)


def _files(folder: Path) -> dict[str, Path]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path for path in paths}


def _of_file(old: Path, new: Path) -> tuple[list[str], int]:
    """The differences of two files, and how many keys were added."""
    before, after = old.read_text(encoding="utf-8"), new.read_text(encoding="utf-8")
    if before == after:
        return [], 0
    if old.suffix == ".json":
        found = list(_of_values("", json.loads(before), json.loads(after)))
        gone = [str(one) for one in found if one.before is not UNSAID]
        return gone, len(found) - len(gone)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = [line for line in list(lines)[2:] if not line.startswith("@@")]
    return [f"  {line[:LONGEST]}" for line in changed], 0


def _of_values(place: str, old: object, new: object) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_tables(place, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield Difference(f"{place} (length)", len(old), len(new))
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _of_values(f"{place}[{number}]", one, other)
    # 1, 1.0 and true differ here, as they do in the file.
    elif json.dumps(old) != json.dumps(new):
        yield Difference(place, old, new)


def _of_tables(
    place: str, old: Mapping[str, object], new: Mapping[str, object]
) -> Iterator[Difference]:
    for key in sorted((old.keys() | new.keys()) - set(IGNORED)):
        if key in old and key in new:
            yield from _of_values(f"{place}.{key}", old[key], new[key])
        else:
            before, after = old.get(key, UNSAID), new.get(key, UNSAID)
            yield Difference(f"{place}.{key}", before, after)


def _shown(value: object) -> str:
    text = "(nothing)" if value is UNSAID else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text)} characters)"
