"""Try every supported version, and each distribution, in environments of their own.

`make matrix` runs all sessions but `release`; `make release-check` runs that one. One alone:
`nox --session "tests-3.13"`. Pythons that are not on the path are left out. Environments and
reports are in `.nox`.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import nox

nox.options.sessions = ["tests", "flower", "flower_legacy", "nvflare"]
nox.options.default_venv_backend = "venv"

ROOT = Path(__file__).parent

TORCH = "torch==2.13.0"

LOCKED = ("--require-hashes", "--no-deps", "--requirement")
"""Options of pip before the name of a lock."""

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]

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


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the fast tests, and those of recorders, with the versions of the lock."""
    install(session)
    run_tests(
        session,
        "-m",
        "not slow and not deployment and not nightly",
        "--jaxtyping-packages=",
        "tests",
    )
    run_tests(session, "-m", "", "tests/recorders")


@nox.session(python=["3.11", "3.13"])
def flower(session: nox.Session) -> None:
    """Run the tests of recorders with the newest Flower."""
    install(session, "flwr==1.42.0", "certifi>=2026.10.18", "uv>=0.13.5,<0.14")
    run_tests(session, "-m", "", "tests/recorders")


@nox.session(python="3.11")
def flower_legacy(session: nox.Session) -> None:
    """Run the tests of strategies with the oldest Flower whose strategies are recorded."""
    old = (
        "click<8.2",
        "cryptography<45",
        "pathspec<0.13",
        "protobuf<5",
        "rich<14",
        "typer<0.13",
    )
    install(session, "flwr==1.18.0", *old)
    run_tests(session, "-m", "", "tests/recorders/test_flower_strategy.py")


@nox.session(python="3.13")
def nvflare(session: nox.Session) -> None:
    """Run the tests of recorders with the next NVFlare."""
    install(session, "nvflare==2.9.1rc5")
    run_tests(session, "-m", "", "tests/recorders")


@nox.session(python=False)
@nox.parametrize("versions", ["locked", "newest"])
@nox.parametrize("kind", ["wheel", "sdist"])
def release(session: nox.Session, kind: str, versions: str) -> None:
    """Build a distribution, and use it from an empty folder, with none of the checkout."""
    with TemporaryDirectory(prefix="overheard-release-") as folder:
        work = Path(folder)
        session.run(sys.executable, "-m", "venv", str(work / "environment"))
        build = (sys.executable, "-m", "uv", "build", "--quiet", f"--{kind}")
        locked = ("--require-hashes", "--build-constraints", str(ROOT / "locks" / "build.txt"))
        session.run(*build, *locked, "--out-dir", str(work / "dist"), str(ROOT))
        (built,) = (one for one in (work / "dist").iterdir() if one.suffix in (".whl", ".gz"))
        if missing := missing_files(built):
            session.error(f"{built.name} misses {', '.join(missing)}")
        copytree(ROOT / "examples" / "plugin", work / "plugin")
        commands = work / "environment" / "bin"
        pip = (str(commands / "pip"), "install", "--quiet", "--no-compile")
        session.run(*pip, TORCH)
        if versions == "locked":
            session.run(*pip, *LOCKED, str(ROOT / "locks" / "audit.txt"))
        session.run(*pip, str(built), str(work / "plugin"), "pytest")
        with session.chdir(work):
            use(session, commands)
        with session.chdir(work / "plugin"):
            session.run(str(commands / "pytest"), "-q", "-p", "no:cacheprovider", "tests")


def use(session: nox.Session, commands: Path) -> None:
    """Audit in the current folder with the commands of another one."""
    Path("plan.toml").write_text(TINY_PLAN, encoding="utf-8")
    for arguments in (
        ("--version",),
        ("list", "attacks"),
        ("plan", "check", "plan.toml", "--no-estimate"),
        ("audit", "plan.toml", "--out", "audit", "--quiet"),
        ("evidence", "audit"),
    ):
        session.run(str(commands / "overheard"), *arguments, silent=True)
    for name in ("report.html", "findings.json", "findings.csv", "evidence/annex.pdf"):
        if not Path("audit", name).exists():
            session.error(f"no {name} of the audit")


def install(session: nox.Session, *others: str) -> None:
    """Install what the lock has, and then other versions of these packages in their place."""
    session.install(TORCH)
    session.install(*LOCKED, "locks/all.txt", "--requirement", "locks/build.txt")
    session.install(
        "--no-deps", "--no-build-isolation", "--editable", ".", "--editable", "./studies"
    )
    if others:
        session.install(*others)


def run_tests(session: nox.Session, *options: str) -> None:
    """Run tests in two processes, with what `nox -- OPTIONS` names in addition."""
    session.run(
        *("pytest", "-n", "2", "-q", "-p", "no:cacheprovider", "--dist", "loadfile"),
        *(*options, *session.posargs),
        env={"OMP_NUM_THREADS": "1"},
    )


def missing_files(distribution: Path) -> list[str]:
    """Return the tracked files of the package that a wheel or a source distribution misses."""
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
    return sorted(tracked - inside)
