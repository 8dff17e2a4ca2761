"""Prints which known flaws `pip-audit` found in the locked packages, and what it did not check.

`python locks/flaws.py REPORT LOG` reads its report in JSON, and its log if there is no report.
Exits with 1 if there is a flaw. A package that cannot be looked up fails nothing, but is named.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_NAMED = 8
"""Most packages that a line names."""


def main(report: Path, log: Path) -> int:
    """Print what is known, and return the exit code."""
    if not report.is_file():
        reason = log.read_text("utf-8", errors="replace").strip().rpartition("\n")[2]
        _print(
            f"No list of known flaws could be read, so nothing was checked: {reason.strip()}"
        )
        return 0
    packages = json.loads(report.read_text("utf-8"))["dependencies"]
    flaws = list(_flaws(packages))
    skipped = sorted({one["name"] for one in packages if "skip_reason" in one})
    _print(*flaws, f"Packages checked: {len(packages) - len(skipped)}. Flaws: {len(flaws)}.")
    if skipped:
        more = len(skipped) - MAX_NAMED
        names = ", ".join(skipped[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        _print(f"Not checked, as the list of flaws lacks them: {len(skipped)}, {names}.")
    return 1 if flaws else 0


def _flaws(packages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each flaw."""
    for package in packages:
        for flaw in package.get("vulns", ()):
            mended = ", ".join(flaw["fix_versions"]) or "no version yet"
            yield f"{package['name']} {package['version']}: {flaw['id']}, mended in {mended}"


def _print(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
