"""Build a wheel and a source distribution, and try each in a clean environment.

`make release-check` runs it, with the versions of the lock; with `--newest`, packages are the
newest that fit, as for a user without constraints. Nothing of the checkout is on the path.
"""

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from time import monotonic

from versions.environments import (
    ROOT,
    clean_variables,
    install,
    lock_file,
    make_environment,
    run_uv,
)

TINY_PLAN = """\
title = "A tiny audit"
seeds = [0]

[data]
source = "digits"
split = { kind = "dirichlet", alpha = 0.5 }
clients = 3
examples = [20, 40]
auxiliary_per_class = 5

[training]
model = { kind = "mlp", hidden = [8] }
rounds = 2
rate = 0.1

[[threats]]
observers = ["server"]
attacks = ["mean_softmax", "llg"]
"""

OUTPUTS = ("report.html", "findings.json", "findings.csv")
"""Files that an audit writes."""

PLUGIN = ROOT / "examples" / "plugin"
"""A package of somebody else, whose tests are the contract tests."""


def main(arguments: Sequence[str]) -> int:
    """Build and try both distributions; return 1 if something fails, else 0."""
    version = "{}.{}".format(*sys.version_info[:2])
    lock = None if "--newest" in arguments else lock_file(version)
    with TemporaryDirectory(prefix="overheard-release-") as folder:
        built = build(Path(folder) / "dist")
        failed = [one for file in built for one in missing_files(file)]
        for file in built:
            print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")
            failed += try_distribution(file, Path(folder) / file.suffix[1:], lock)
    print("\n".join(failed) if failed else "both distributions work")
    return 1 if failed else 0


def build(folder: Path) -> list[Path]:
    """Build a source distribution, and a wheel of it; return both files."""
    run_uv("build", "--quiet", "--out-dir", str(folder), str(ROOT))
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def missing_files(distribution: Path) -> list[str]:
    """Return a sentence for each tracked file of the package that a distribution misses."""
    listed = subprocess.run(
        ["git", "ls-files", "src/overheard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tracked = {name.removeprefix("src/") for name in listed.stdout.splitlines()}
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as archive:
            inside = set(archive.namelist())
    else:
        with tarfile.open(distribution) as archive:
            inside = {name.partition("/src/")[2] for name in archive.getnames()}
    return [f"{distribution.name}: {name} is missing" for name in sorted(tracked - inside)]


def try_distribution(distribution: Path, folder: Path, lock: Path | None) -> list[str]:
    """Install a distribution and use it from an empty folder; return what failed.

    Args:
        distribution: the wheel or the source distribution.
        folder: a new folder for the environment and the work.
        lock: versions of packages; None = the newest that fit.

    """
    python = make_environment(folder / "environment", sys.executable)
    start = monotonic()
    install(python, [str(distribution)], lock=lock)
    print(f"  installed in {monotonic() - start:.0f} s")
    work = folder / "work"
    work.mkdir()
    (work / "plan.toml").write_text(TINY_PLAN, encoding="utf-8")
    command = python.with_name("overheard")
    failed = [
        f"{distribution.name}: {' '.join(arguments)}: {said}"
        for arguments in (
            ("--version",),
            ("list", "attacks"),
            ("plan", "check", "plan.toml", "--no-estimate"),
            ("audit", "plan.toml", "--out", "audit", "--quiet"),
        )
        if (said := run_in(work, [str(command), *arguments]))
    ]
    failed += [
        f"{distribution.name}: no {name} of the audit"
        for name in OUTPUTS
        if not (work / "audit" / name).exists()
    ]
    return failed + try_plugin(python, work, lock)


def try_plugin(python: Path, work: Path, lock: Path | None) -> list[str]:
    """Install the example package beside it, and run its contract tests; return what failed."""
    plugin = Path(copytree(PLUGIN, work / "plugin"))
    install(python, [str(plugin), "pytest"], lock=lock)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    said = run_in(plugin, command)
    return [f"contract tests: {said}"] if said else []


def run_in(folder: Path, command: Sequence[str]) -> str:
    """Run a command in a folder; return the end of what it prints if it fails, else ""."""
    start = monotonic()
    done = subprocess.run(
        list(command),
        cwd=folder,
        env=clean_variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    name = Path(command[0]).name
    print(f"  {name} {' '.join(command[1:])}: {monotonic() - start:.1f} s", flush=True)
    return (
        ""
        if done.returncode == 0
        else f"exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
