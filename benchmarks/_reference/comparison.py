"""Differences between two references by file and key, without importing overheard."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PAGE = "report.html"

LONGEST = 300
"""Largest number of printed characters of a value or line."""

IGNORED = ("versions",)
"""Keys that differ between machines."""

MISSING = object()

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

TEXTS = (".html", ".md", ".txt", ".xml")
"""Endings of files that consist of sentences."""


@dataclass(frozen=True, slots=True)
class Rewordings:
    """Sentences and keys that were rewritten on purpose.

    Args:
        sentences: pairs of an old and a new sentence, with "N" in place of numbers.
        keys: new name of each renamed key of claims.

    """

    sentences: frozenset[tuple[str, str]] = frozenset()
    keys: Mapping[str, str] = field(default_factory=dict)

    def allow(self, before: object, after: object) -> bool:
        """Return whether a text is a known rewording with the same numbers."""
        if not (isinstance(before, str) and isinstance(after, str)):
            return False
        pair = (NUMBER.sub("N", before), NUMBER.sub("N", after))
        has_same_numbers = pair[0].count("N") != pair[1].count("N") or sorted(
            NUMBER.findall(before)
        ) == sorted(NUMBER.findall(after))
        return pair in self.sentences and has_same_numbers

    def rename(self, value: object) -> object:
        """Return an old document with the new keys."""
        if isinstance(value, dict):
            return {self.keys.get(key, key): self.rename(one) for key, one in value.items()}
        return [self.rename(one) for one in value] if isinstance(value, list) else value


NO_REWORDINGS = Rewordings()


def read_rewordings(path: Path) -> Rewordings:
    """Read a table of rewordings: JSON with `sentences` (pairs) and `keys`."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return Rewordings(frozenset(map(tuple, table["sentences"])), table["keys"])


@dataclass(frozen=True, slots=True)
class Difference:
    """A place in a document with its old and new value."""

    place: str
    before: object
    after: object

    def __str__(self) -> str:
        """Return three lines: place, old value, new value."""
        return f"  {self.place}\n    - {_excerpt(self.before)}\n    + {_excerpt(self.after)}"


def differences(
    old: Path, new: Path, *, strict: bool, rewordings: Rewordings = NO_REWORDINGS
) -> int:
    """Print every difference; return 1 if any counts, else 0.

    With rewordings, files of sentences do not count.
    """
    for folder in (old, new):
        if not folder.is_dir():
            print(f"{folder}: folder not found")
            return 1
    before, after = _files(old), _files(new)
    counts, added = 0, 0
    for name in sorted(before.keys() - after.keys()):
        print(f"{name}: missing in the new reference")
        counts += 1
    for name in sorted(before.keys() & after.keys()):
        found, new_keys = _compare_files(before[name], after[name], rewordings)
        added += new_keys
        if found:
            is_sentences = rewordings is not NO_REWORDINGS and name.endswith(TEXTS)
            is_counted = strict or not (is_sentences or name.endswith(PAGE))
            counts += len(found) if is_counted else 0
            note = "" if is_counted else " (not counted)"
            print(f"{name}: {len(found)} differences{note}")
            print("\n".join(found))
    new_files = len(after.keys() - before.keys())
    print(
        f"{len(before)} files compared: {counts} differences; {added} keys and {new_files} "
        "files were added"
    )
    return int(counts > 0)


def _files(folder: Path) -> dict[str, Path]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path for path in paths}


def _compare_files(old: Path, new: Path, rewordings: Rewordings) -> tuple[list[str], int]:
    """Return the differences of two files, and the number of added keys."""
    before, after = old.read_text(encoding="utf-8"), new.read_text(encoding="utf-8")
    if before == after:
        return [], 0
    if old.suffix == ".json":
        documents = rewordings.rename(json.loads(before)), json.loads(after)
        found = [
            one
            for one in _compare_values("", *documents)
            if not rewordings.allow(one.before, one.after)
        ]
        changed = [str(one) for one in found if one.before is not MISSING]
        return changed, len(found) - len(changed)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = [line for line in list(lines)[2:] if not line.startswith("@@")]
    return [f"  {line[:LONGEST]}" for line in changed], 0


def _compare_values(place: str, old: object, new: object) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _compare_tables(place, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield Difference(f"{place} (length)", len(old), len(new))
        for number, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from _compare_values(f"{place}[{number}]", before, after)
    # 1, 1.0 and true are different, as in the file.
    elif json.dumps(old) != json.dumps(new):
        yield Difference(place, old, new)


def _compare_tables(
    place: str, old: Mapping[str, object], new: Mapping[str, object]
) -> Iterator[Difference]:
    # The digest of claims repeats the claims beside it, under their keys.
    ignored = {*IGNORED, "digest"} if "claims" in old and "claims" in new else set(IGNORED)
    for key in sorted((old.keys() | new.keys()) - ignored):
        if key in old and key in new:
            yield from _compare_values(f"{place}.{key}", old[key], new[key])
        else:
            before, after = old.get(key, MISSING), new.get(key, MISSING)
            yield Difference(f"{place}.{key}", before, after)


def _excerpt(value: object) -> str:
    text = "(nothing)" if value is MISSING else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text)} characters)"
