"""Everything that a change of structure must not change, and how two such references differ.

    python benchmarks/reference.py --out DIR            some three minutes of two cores
    python benchmarks/reference.py --compare OLD NEW    exits with 1 where they differ

The plans of `_reference/plans` reach every attack, scorer, defense, split and way to distil,
on data that come with scikit-learn or are made here. DIR holds plain files: of each plan its
findings, its report, what it printed and the digests of its transcripts; recordings and
imports; verdicts of policies; the claims of every attack on the worlds of the tests; models,
plans of papers, help. What is reached how often stands in DIR/coverage.json.

Clocks and versions are left out: each plan is simulated and attacked, then the seconds of its
runs are set to made-up ones, and only then the command audits it in the same folder. It finds
all done, so it tells as well what is read back. To compare needs nothing of overheard. Keys
that were added to a document count as no difference, nor do files; a report's page counts with
--strict alone.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

from _reference.compared import differences
from _reference.coverage import coverage, table
from _reference.kept import keep_audit, keep_files, keep_json

HERE = Path(__file__).resolve().parent
PARTS = HERE / "_reference"
PLANS, POLICIES = PARTS / "plans", PARTS / "policies"

CORES = 2
"""Jobs at once, of one thread each."""

CLAIMANTS = 2
"""Jobs that the attacks are shared out among, to be asked for their claims."""

WORKERS = {"words": 2}
"""Worker processes of a plan; one where a plan is not named here."""

ALONE = ("--seed", 0, "--workers", 1)
"""The first seed of a plan, as a recording is of one."""

MAKERS = re.compile(r"^ *made with .*\n", re.MULTILINE)
"""The line that tells versions."""

EXPORTED_ABOUT = """\
framework = "by hand"
class_names = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
input_shape = [1, 8, 8]

[recipe]
rate = 0.5
epochs = 10
batch = 8

[[defenses]]
name = "local noise"
settings = "LocalNoise()"
enforced_at = "client"
switched_off_by = "nobody"
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the work is done, and where what came of it is kept."""

    scratch: Path
    out: Path

    def say(self, place: str, *arguments: object) -> int:
        """Give a command to `overheard`; what it prints and how it ends is kept at a place."""
        done = self._run("-m", "overheard", *arguments)
        printed = f"$ overheard {' '.join(map(str, arguments))}\n{done.stdout}"
        # Warnings name files of ours, which move; a message is all that a refusal has.
        refused = done.stderr if done.returncode not in (0, 1) else ""
        told = MAKERS.sub("", f"{printed}{refused}exit code {done.returncode}\n")
        path = self.out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(told.replace(f"{PARTS}/", ""), encoding="utf-8")
        return done.returncode

    def quietly(self, *arguments: object) -> None:
        """Run Python; that it fails is the end."""
        done = self._run(*arguments)
        if done.returncode:
            raise RuntimeError(f"{arguments}: exit code {done.returncode}\n{done.stderr}")

    def _run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        kept = {key: value for key, value in os.environ.items() if key != "OVERHEARD_DATA"}
        ways = (HERE.parent / "src", HERE, HERE.parent)
        surroundings = {
            **kept,
            "PYTHONPATH": os.pathsep.join(map(str, ways)),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        return subprocess.run(
            command,
            cwd=self.scratch,
            env=surroundings,
            text=True,
            capture_output=True,
            check=False,
        )

    def simulate(self, plan: Path) -> None:
        """Audit a plan that simulates, by clocks that stand still, and keep what it found."""
        name = plan.stem
        workers = WORKERS.get(name, 1)
        self.quietly(PARTS / "listen.py", plan, name, workers)
        _stop_clocks(self.scratch / name)
        self.audit(name, plan, "--workers", workers)

    def audit(self, name: str, plan: Path, *more: object) -> None:
        """Audit a plan, and keep what it found."""
        place = f"audits/{name}/printed.txt"
        if self.say(place, "audit", plan, *more, "--out", name):
            raise RuntimeError((self.out / place).read_text(encoding="utf-8"))
        keep_audit(self.scratch / name, self.out / "audits" / name)


def main() -> None:
    """Write a reference, or compare two."""
    request = read_command_line()
    if request.compare is not None:
        old, new = request.compare
        sys.exit(differences(old, new, strict=request.strict))
    if request.out.exists() and any(request.out.iterdir()):
        sys.exit(f"{request.out}: is not empty: choose another folder")
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="reference-") as scratch:
        bench = Bench(Path(scratch), request.out.resolve())
        write(bench)
    covered = coverage(request.out)
    keep_json(covered, request.out / "coverage.json")
    print(table(covered))
    used = getrusage(RUSAGE_CHILDREN)
    cores = used.ru_utime + used.ru_stime
    print(f"{perf_counter() - began:.0f} s, {cores:.0f} s of cores: {request.out}")


def write(bench: Bench) -> None:
    """Do all jobs: those first on whose folders others wait, and long plans before short."""
    bench.quietly(PARTS / "people.py", bench.scratch)
    plans = sorted(PLANS.glob("*.toml"), key=lambda path: -path.stat().st_size)
    with ThreadPoolExecutor(CORES) as pool:
        audits = [pool.submit(bench.simulate, plan) for plan in plans]
        rest = [
            pool.submit(bench.quietly, PARTS / "claims.py", bench.out, number, CLAIMANTS)
            for number in range(CLAIMANTS)
        ]
        rest.append(pool.submit(bench.quietly, PARTS / "parts.py", bench.out))
        _done(audits)
        rest += [
            pool.submit(job, bench)
            for job in (record, record_falsely, record_others, import_weights, refuse)
        ]
        _done(rest)
        rest = [
            pool.submit(check, bench, policy, findings, against)
            for policy, findings, against in (
                ("strict", "canaries", "members"),
                ("strict", "members", None),
                ("shares", "defenses", None),
                ("claims", "recorded-falsely", None),
                ("lenient", "canaries", "canaries"),
            )
        ]
        _done(rest)


def record(bench: Bench) -> None:
    """A simulated run as a recording, with its truth and without, and what is told of it."""
    run = _recording(bench, "canaries/runs/local_DP-seed0", "recording")
    bench.say("shown/recording.txt", "show", run, "--verify")
    plan = PLANS / "canaries.toml"
    bench.audit("recorded", plan, "--transcript", run, *ALONE)
    (bench.scratch / run / "truth.json").unlink()
    bench.audit("recorded-untold", plan, "--transcript", run, *ALONE)


def record_falsely(bench: Bench) -> None:
    """A recording that states more noise than there was: attacks refute it."""
    run = _recording(bench, "canaries/runs/local_DP-seed0", "false-recording")
    path = bench.scratch / run / "transcript" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["defenses"][0]["mechanism"]["noise_multiplier"] = 30.0
    path.write_text(json.dumps(manifest), encoding="utf-8")
    plan = PLANS / "canaries.toml"
    bench.audit("recorded-falsely", plan, "--transcript", run, *ALONE)


def record_others(bench: Bench) -> None:
    """Recordings of a masked run, of distilled data and of people."""
    for name, arm in (
        ("defenses", "masked_local_DP"),
        ("distilled", "FLiP"),
        ("people", "mm_aug"),
    ):
        run = _recording(bench, f"{name}/runs/{arm}-seed0", f"{name}-recording")
        bench.say(f"shown/{name}.txt", "show", run)
        if name != "people":
            plan = PLANS / f"{name}.toml"
            bench.audit(f"recorded-{name}", plan, "--transcript", run, *ALONE)


def import_weights(bench: Bench) -> None:
    """Canaries drawn beforehand, and weights that another framework saved."""
    plan = PLANS / "canaries.toml"
    bench.say("canaries/printed.txt", "canaries", plan, "--out", "drawn")
    keep_files(bench.scratch / "drawn", bench.out / "canaries" / "files.json", "*.npz")
    run = bench.scratch / "canaries/runs/no_defense-seed0/transcript/rounds"
    for folder in sorted(run.iterdir()):
        there = bench.scratch / "exported" / f"round-{int(folder.name[1:]):04d}"
        there.mkdir(parents=True)
        for file in folder.glob("*.safetensors"):
            words = file.stem.split("-")
            called = "global" if words[1] == "server" else "-".join(words[1:3])
            shutil.copy(file, there / f"{called}.safetensors")
    (bench.scratch / "exported" / "about.toml").write_text(EXPORTED_ABOUT, encoding="utf-8")
    given = ("import", "exported", "--out", "imported-run", "--kind", "differences")
    if bench.say("imported/printed.txt", *given):
        raise RuntimeError("nothing was imported")
    bench.say("shown/imported.txt", "show", "imported-run", "--verify")
    shutil.copy(bench.scratch / "drawn/truth.json", bench.scratch / "imported-run/truth.json")
    bench.audit("imported", plan, "--transcript", "imported-run", *ALONE)


def refuse(bench: Bench) -> None:
    """What is said of plans, policies and folders that cannot be."""
    mistaken = PARTS / "mistaken.toml"
    bench.say("refused/plan.txt", "audit", mistaken, "--out", "nowhere")
    bench.say("refused/policy.txt", "check", "canaries/findings.json", "--policy", mistaken)
    bench.say("refused/folder.txt", "audit", PLANS / "words.toml", "--out", "canaries")
    bench.say("refused/experiment.txt", "reproduce", "decaf/table99")
    other = _recording(bench, "defenses/runs/noise-seed0", "other-recording")
    given = ("audit", PLANS / "canaries.toml", "--transcript", other, "--out", "nowhere")
    bench.say("refused/recording.txt", *given)


def check(bench: Bench, policy: str, findings: str, against: str | None) -> None:
    """Hold findings against a policy, in every way to tell the verdict."""
    name = f"{policy}-{findings}"
    given = [f"{findings}/findings.json", "--policy", POLICIES / f"{policy}.toml"]
    given += [] if against is None else ["--against", f"{against}/findings.json"]
    told = (f"{name}.xml", f"{name}.md")
    bench.say(f"checks/{name}.txt", "check", *given, "--junit", told[0], "--markdown", told[1])
    for file in told:
        shutil.copy(bench.scratch / file, bench.out / "checks" / file)


def _recording(bench: Bench, run: str, name: str) -> str:
    """A copy of a run's transcript and truth; its name."""
    there = bench.scratch / name
    shutil.copytree(bench.scratch / run / "transcript", there / "transcript")
    shutil.copy(bench.scratch / run / "truth.json", there)
    return name


def _stop_clocks(folder: Path) -> None:
    """Say that every run of an audit took a time that we choose."""
    for number, path in enumerate(sorted(folder.rglob("seconds.json"))):
        told = dict.fromkeys(json.loads(path.read_text(encoding="utf-8")), 10.0 + number)
        path.write_text(json.dumps(told), encoding="utf-8")


def _done(jobs: Sequence[Future[None]]) -> None:
    for job in jobs:
        job.result()


def read_command_line() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--out", type=Path, help="empty folder for a reference")
    asked.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--strict", action="store_true", help="pages of reports count too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
