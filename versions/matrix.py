"""Try every supported version: the tests in a throwaway environment for each.

`make matrix` runs all rows whose code changed since they last passed, one by one, and writes
what ran to `versions/results.json` and to the table in `docs/versions.md`. It can be stopped
and started again. `python -m versions.matrix NAME ...` runs the rows of these names anew.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from xml.etree import ElementTree

from versions.environments import (
    ROOT,
    clean_variables,
    find_python,
    install,
    lock_file,
    make_environment,
)

FOLDER = ROOT / ".matrix"
"""Folder of the environments; git ignores it."""

RESULTS = Path(__file__).with_name("results.json")

PAGE = ROOT / "docs" / "versions.md"

BEGIN, END = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"

EXTRAS = "dp,flower,nvflare,fedbiomed,mlflow,docs,dev"
"""The extras that the tests need."""

PARTS = {
    # Without slow tests, and without type checks at calls.
    "quick part": ("-m", "not slow and not deployment", "--jaxtyping-packages=", "tests"),
    # With those that start servers and clients as processes.
    "recorders": ("-m", "", "tests/recorders"),
    "legacy strategies": ("-m", "", "tests/recorders/test_flower_strategy.py"),
}
"""What can run in a row: the options of pytest by name."""

PACKAGES = ("flwr", "nvflare", "torch", "numpy")
"""Packages whose versions the table shows."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """What to try.

    Args:
        python: version of Python, such as "3.13".
        packages: packages to install in place of those of the lock.
        parts: the names of what runs.
        extras: the extras to install.

    """

    python: str
    packages: tuple[str, ...] = ()
    parts: tuple[str, ...] = ("recorders",)
    extras: str = EXTRAS

    @property
    def name(self) -> str:
        """Return the name of the row, such as "3.13 flwr==1.42.0"."""
        return " ".join((self.python, *self.packages[:1]))


@dataclass(frozen=True, slots=True)
class MatrixResult:
    """What ran in a row.

    Args:
        python: exact version of Python.
        versions: installed version by package.
        tests: what ran, such as "quick part, recorders".
        passed: number of tests that passed.
        failed: number of tests that failed, or could not begin.
        skipped: number of tests that were skipped.
        seconds: duration of the tests.
        day: when they ran, such as "2026-11-23".
        digest: digest of the code that was tried.

    """

    python: str
    versions: Mapping[str, str]
    tests: str
    passed: int
    failed: int
    skipped: int
    seconds: int
    day: str
    digest: str


# flwr 1.42 asks for a certifi that the registries did not have yet: an older one does.
FLWR_1_42 = ("flwr==1.42.0", "certifi>=2026.10.18", "uv>=0.13.5,<0.14")

# The oldest whose legacy strategies are recorded; it pins old packages.
FLWR_1_18 = (
    "flwr==1.18.0",
    "click<8.2",
    "cryptography<45",
    "pathspec<0.13",
    "protobuf<5",
    "rich<14",
    "typer<0.13",
)

WHOLE = ("quick part", "recorders")

ROWS = (
    MatrixRow("3.11", parts=WHOLE),
    MatrixRow("3.11", FLWR_1_18, ("legacy strategies",), "dev"),
    MatrixRow("3.11", FLWR_1_42),
    MatrixRow("3.12", parts=WHOLE),
    MatrixRow("3.13", parts=WHOLE),
    MatrixRow("3.13", FLWR_1_42),
    MatrixRow("3.13", ("nvflare==2.9.1rc5",)),
    MatrixRow("3.14", parts=WHOLE),
)


def code_digest() -> str:
    """Return a digest of all code that a row tries."""
    digest = blake2b(digest_size=8)
    files = ("pyproject.toml", "conftest.py", "src/**/*", "tests/**/*", "locks/*.txt")
    for path in sorted({one for pattern in files for one in ROOT.glob(pattern)}):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def run_row(row: MatrixRow, digest: str) -> MatrixResult | None:
    """Make the environment of a row, run its tests and remove it; None = there is no Python."""
    found = find_python(row.python)
    if found is None:
        return None
    folder = FOLDER / row.name.replace(" ", "-")
    python = make_environment(folder, found)
    lock, overrides = folder / "lock.txt", folder / "overrides.txt"
    lock.write_text("".join(without_packages(lock_file(row.python), row.packages)))
    overrides.write_text("\n".join(row.packages))
    wanted = ["--editable", f".[{row.extras}]", *row.packages]
    install(python, wanted, lock=lock, overrides=overrides)
    start = monotonic()
    reports = [run_tests(python, PARTS[name], folder / f"{name}.xml") for name in row.parts]
    passed, failed, skipped = (sum(numbers) for numbers in zip(*reports, strict=True))
    result = MatrixResult(
        _print(python, "import platform; print(platform.python_version())"),
        {name: _version_in(python, name) for name in PACKAGES},
        ", ".join(row.parts),
        passed,
        failed,
        skipped,
        round(monotonic() - start),
        f"{datetime.now(UTC):%Y-%m-%d}",
        digest,
    )
    # What failed can be looked at in the environment.
    if not failed:
        shutil.rmtree(folder)
    return result


def read_results() -> dict[str, MatrixResult]:
    """Return the results so far, by name of the row."""
    if not RESULTS.exists():
        return {}
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {name: MatrixResult(**entry) for name, entry in stored.items()}


def write_results(results: Mapping[str, MatrixResult]) -> None:
    """Write the results, and the table of the page."""
    entries = {name: asdict(results[name]) for name in sorted(results)}
    RESULTS.write_text(f"{json.dumps(entries, indent=1)}\n", encoding="utf-8")
    PAGE.write_text(
        page_with_table(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8"
    )


def page_with_table(page: str, results: Mapping[str, MatrixResult]) -> str:
    """Return the text of the page with the table of these results."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin, f"{PAGE}: {BEGIN!r} is missing"
    assert end, f"{PAGE}: {END!r} is missing"
    table = matrix_table(results[name] for name in sorted(results))
    return f"{head}{BEGIN}\n{table}\n{END}{tail}"


def matrix_table(results: Iterable[MatrixResult]) -> str:
    """Return the table in Markdown, a row for each result."""
    lines = [
        f"| Python | {' | '.join(PACKAGES)} | tests | passed | failed | skipped | day |",
        f"|{'---|' * (len(PACKAGES) + 6)}",
    ]
    for one in results:
        versions = (one.versions[name] for name in PACKAGES)
        cells = (one.python, *versions, one.tests, one.passed, one.failed, one.skipped, one.day)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main(names: Sequence[str]) -> int:
    """Run the rows of these names, or all that changed; return 1 if a test failed, else 0."""
    unknown = set(names) - {row.name for row in ROWS}
    if unknown:
        print(f"no row {', '.join(sorted(unknown))}: there are {[row.name for row in ROWS]}")
        return 2
    digest, results = code_digest(), read_results()
    for row in ROWS:
        last = results.get(row.name)
        is_done = last is not None and last.digest == digest and not last.failed
        if row.name not in names if names else is_done:
            continue
        print(f"{row.name} ...", flush=True)
        result = run_row(row, digest)
        if result is None:
            print(f"{row.name}: no python{row.python} is on the path, so it is left out")
            continue
        results[row.name] = result
        write_results(results)
    print(matrix_table(results.values()))
    return 1 if any(one.failed for one in results.values()) else 0


def without_packages(lock: Path, packages: Iterable[str]) -> Iterable[str]:
    """Yield the lines of a lock that pin none of these packages."""
    dropped = {_name_of(package) for package in packages}
    with lock.open(encoding="utf-8") as file:
        yield from (line for line in file if _name_of(line) not in dropped)


def _name_of(requirement: str) -> str:
    """Return the package of a requirement, such as "flwr" of "flwr>=1.41,<2"."""
    return re.split(r"[<>=!~ ;]", requirement)[0]


def run_tests(python: Path, options: Sequence[str], report: Path) -> tuple[int, int, int]:
    """Run tests, and return how many passed, failed and were skipped."""
    command = [str(python), "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider"]
    with report.with_suffix(".txt").open("w", encoding="utf-8") as printed:
        subprocess.run(
            [*command, "--dist", "worksteal", f"--junitxml={report}", *options],
            cwd=ROOT,
            env=clean_variables(),
            stdout=printed,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if not report.exists():
        return 0, 1, 0
    # pytest wrote it a moment ago, in a folder of ours.
    (suite,) = ElementTree.parse(report).iter("testsuite")
    tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return tests - failed - skipped, failed, skipped


def _version_in(python: Path, package: str) -> str:
    """Return the version of a package in the environment of a Python; "-" = it has none."""
    code = (
        "from importlib.metadata import distributions\n"
        f"found = [one.version for one in distributions() if one.name == {package!r}]\n"
        "print(*found[:1] or '-')"
    )
    return _print(python, code)


def _print(python: Path, code: str) -> str:
    """Return what code prints."""
    done = subprocess.run(
        [str(python), "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=clean_variables(),
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
