"""Write all results that refactoring must not change, or compare two such references.

    python benchmarks/reference.py --out DIR            some three minutes on two cores
    python benchmarks/reference.py --compare OLD NEW    exits with 1 if they differ

The plans of `_reference/plans` use every attack, scorer, defense, split and distillation, on
data from scikit-learn or generated here. DIR has plain files: for each plan its findings,
report, output and transcript digests; recordings and imports; verdicts of policies; claims of
every attack on the runs of the tests; models, plans of papers, and help. DIR/coverage.json has
the number of uses of each part.

Times and versions are left out. Each plan is simulated and attacked, then the seconds of its
runs are replaced by fixed ones, and then the command audits it in the same folder. It reuses
the results, so reading them back is tested too. Comparing does not import overheard. Added keys
and files are no difference. Differences between report pages count only with --strict. With
`--rewordings FILE`, sentences of that table are equal, and files of sentences do not count.
`_reference/rewordings.json` has the sentences that changed after commit 8d578da.
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

from _reference.comparison import NO_REWORDINGS, differences, read_rewordings
from _reference.coverage import coverage, table
from _reference.storage import store_audit, store_digests, store_json

HERE = Path(__file__).resolve().parent
PARTS = HERE / "_reference"
PLANS, POLICIES = PARTS / "plans", PARTS / "policies"

CORES = 2
"""Jobs in parallel, with one thread each."""

CLAIM_JOBS = 2
"""Jobs among which attacks are divided to write their claims."""

WORKERS = {"words": 2}
"""Worker processes of plans; others have one."""

FIRST_SEED = ("--seed", 0, "--workers", 1)
"""Options for a recording: the first seed of a plan, one worker."""

VERSIONS = re.compile(r"^ *made with .*\n", re.MULTILINE)
"""The line with versions."""

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
    """A scratch folder for commands and a folder for their results."""

    scratch: Path
    out: Path

    def overheard(self, place: str, *arguments: object) -> int:
        """Run `overheard`, write its output and exit code to a file, and return the code."""
        done = self._run("-m", "overheard", *arguments)
        printed = f"$ overheard {' '.join(map(str, arguments))}\n{done.stdout}"
        # Warnings name source files, which may move; a refusal prints only its message.
        refused = done.stderr if done.returncode not in (0, 1) else ""
        text = VERSIONS.sub("", f"{printed}{refused}exit code {done.returncode}\n")
        path = self.out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(f"{PARTS}/", ""), encoding="utf-8")
        return done.returncode

    def python(self, *arguments: object) -> None:
        """Run Python; raise an error if it fails."""
        done = self._run(*arguments)
        if done.returncode:
            raise RuntimeError(f"{arguments}: exit code {done.returncode}\n{done.stderr}")

    def _run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        inherited = {key: value for key, value in os.environ.items() if key != "OVERHEARD_DATA"}
        paths = (HERE.parent / "src", HERE, HERE.parent)
        environment = {
            **inherited,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        return subprocess.run(
            command,
            cwd=self.scratch,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
        )

    def simulate(self, plan: Path) -> None:
        """Simulate and audit a plan with fixed times, and store the results."""
        name = plan.stem
        workers = WORKERS.get(name, 1)
        self.python(PARTS / "simulate.py", plan, name, workers)
        _fix_times(self.scratch / name)
        self.audit(name, plan, "--workers", workers)

    def audit(self, name: str, plan: Path, *more: object) -> None:
        """Audit a plan and store the results."""
        place = f"audits/{name}/printed.txt"
        if self.overheard(place, "audit", plan, *more, "--out", name):
            raise RuntimeError((self.out / place).read_text(encoding="utf-8"))
        store_audit(self.scratch / name, self.out / "audits" / name)


def main() -> None:
    """Write a reference, or compare two."""
    request = read_command_line()
    if request.compare is not None:
        old, new = request.compare
        rewordings = NO_REWORDINGS
        if request.rewordings is not None:
            rewordings = read_rewordings(request.rewordings)
        sys.exit(differences(old, new, strict=request.strict, rewordings=rewordings))
    if request.out.exists() and any(request.out.iterdir()):
        sys.exit(f"{request.out}: not empty: choose another folder")
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="reference-") as scratch:
        bench = Bench(Path(scratch), request.out.resolve())
        write(bench)
    counts = coverage(request.out)
    store_json(counts, request.out / "coverage.json")
    print(table(counts))
    used = getrusage(RUSAGE_CHILDREN)
    cores = used.ru_utime + used.ru_stime
    print(f"{perf_counter() - began:.0f} s, {cores:.0f} s of CPU: {request.out}")


def write(bench: Bench) -> None:
    """Run all jobs: first those that others depend on, and long plans before short ones."""
    bench.python(PARTS / "people.py", bench.scratch)
    plans = sorted(PLANS.glob("*.toml"), key=lambda path: -path.stat().st_size)
    with ThreadPoolExecutor(CORES) as pool:
        audits = [pool.submit(bench.simulate, plan) for plan in plans]
        others = [
            pool.submit(bench.python, PARTS / "claims.py", bench.out, number, CLAIM_JOBS)
            for number in range(CLAIM_JOBS)
        ]
        others.append(pool.submit(bench.python, PARTS / "parts.py", bench.out))
        _wait(audits)
        others += [
            pool.submit(job, bench)
            for job in (record, record_falsely, record_others, import_weights, refuse)
        ]
        _wait(others)
        checks = [
            pool.submit(check, bench, policy, findings, against)
            for policy, findings, against in (
                ("strict", "canaries", "members"),
                ("strict", "members", None),
                ("shares", "defenses", None),
                ("claims", "recorded-falsely", None),
                ("lenient", "canaries", "canaries"),
            )
        ]
        _wait(checks)


def record(bench: Bench) -> None:
    """Audit a simulated run as a recording, with and without its ground truth."""
    run = _recording(bench, "canaries/runs/local_DP-seed0", "recording")
    bench.overheard("shown/recording.txt", "show", run, "--verify")
    plan = PLANS / "canaries.toml"
    bench.audit("recorded", plan, "--transcript", run, *FIRST_SEED)
    (bench.scratch / run / "truth.json").unlink()
    bench.audit("recorded-untold", plan, "--transcript", run, *FIRST_SEED)


def record_falsely(bench: Bench) -> None:
    """Audit a recording that states too much noise, which attacks refute."""
    run = _recording(bench, "canaries/runs/local_DP-seed0", "false-recording")
    path = bench.scratch / run / "transcript" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["defenses"][0]["mechanism"]["noise_multiplier"] = 30.0
    path.write_text(json.dumps(manifest), encoding="utf-8")
    plan = PLANS / "canaries.toml"
    bench.audit("recorded-falsely", plan, "--transcript", run, *FIRST_SEED)


def record_others(bench: Bench) -> None:
    """Audit recordings of a masked run, of distilled data and of known users."""
    for name, arm in (
        ("defenses", "masked_local_DP"),
        ("distilled", "FLiP"),
        ("people", "mm_aug"),
    ):
        run = _recording(bench, f"{name}/runs/{arm}-seed0", f"{name}-recording")
        bench.overheard(f"shown/{name}.txt", "show", run)
        if name != "people":
            plan = PLANS / f"{name}.toml"
            bench.audit(f"recorded-{name}", plan, "--transcript", run, *FIRST_SEED)


def import_weights(bench: Bench) -> None:
    """Draw canaries in advance, and import weights saved by another framework."""
    plan = PLANS / "canaries.toml"
    bench.overheard("canaries/printed.txt", "canaries", plan, "--out", "drawn")
    store_digests(bench.scratch / "drawn", bench.out / "canaries" / "files.json", "*.npz")
    run = bench.scratch / "canaries/runs/no_defense-seed0/transcript/rounds"
    for folder in sorted(run.iterdir()):
        target = bench.scratch / "exported" / f"round-{int(folder.name[1:]):04d}"
        target.mkdir(parents=True)
        for file in folder.glob("*.safetensors"):
            words = file.stem.split("-")
            name = "global" if words[1] == "server" else "-".join(words[1:3])
            shutil.copy(file, target / f"{name}.safetensors")
    (bench.scratch / "exported" / "about.toml").write_text(EXPORTED_ABOUT, encoding="utf-8")
    command = ("import", "exported", "--out", "imported-run", "--kind", "differences")
    if bench.overheard("imported/printed.txt", *command):
        raise RuntimeError("the import failed")
    bench.overheard("shown/imported.txt", "show", "imported-run", "--verify")
    shutil.copy(bench.scratch / "drawn/truth.json", bench.scratch / "imported-run/truth.json")
    bench.audit("imported", plan, "--transcript", "imported-run", *FIRST_SEED)


def refuse(bench: Bench) -> None:
    """Write the error messages on invalid plans, policies and folders."""
    mistaken = PARTS / "mistaken.toml"
    bench.overheard("refused/plan.txt", "audit", mistaken, "--out", "nowhere")
    bench.overheard(
        "refused/policy.txt", "check", "canaries/findings.json", "--policy", mistaken
    )
    bench.overheard("refused/folder.txt", "audit", PLANS / "words.toml", "--out", "canaries")
    bench.overheard("refused/experiment.txt", "reproduce", "decaf/table99")
    other = _recording(bench, "defenses/runs/noise-seed0", "other-recording")
    command = ("audit", PLANS / "canaries.toml", "--transcript", other, "--out", "nowhere")
    bench.overheard("refused/recording.txt", *command)


def check(bench: Bench, policy: str, findings: str, against: str | None) -> None:
    """Check findings against a policy, with all formats of the verdict."""
    name = f"{policy}-{findings}"
    options = [f"{findings}/findings.json", "--policy", POLICIES / f"{policy}.toml"]
    options += [] if against is None else ["--against", f"{against}/findings.json"]
    junit, markdown = f"{name}.xml", f"{name}.md"
    formats = ("--junit", junit, "--markdown", markdown)
    bench.overheard(f"checks/{name}.txt", "check", *options, *formats)
    for file in (junit, markdown):
        shutil.copy(bench.scratch / file, bench.out / "checks" / file)


def _recording(bench: Bench, run: str, name: str) -> str:
    """Copy a run's transcript and ground truth; return the copy's name."""
    copy = bench.scratch / name
    shutil.copytree(bench.scratch / run / "transcript", copy / "transcript")
    shutil.copy(bench.scratch / run / "truth.json", copy)
    return name


def _fix_times(folder: Path) -> None:
    """Replace the measured times of all runs of an audit by fixed ones."""
    for number, path in enumerate(sorted(folder.rglob("seconds.json"))):
        seconds = dict.fromkeys(json.loads(path.read_text(encoding="utf-8")), 10.0 + number)
        path.write_text(json.dumps(seconds), encoding="utf-8")


def _wait(jobs: Sequence[Future[None]]) -> None:
    for job in jobs:
        job.result()


def read_command_line() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--out", type=Path, help="empty folder for a reference")
    mode.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument(
        "--rewordings", type=Path, help="with --compare: sentences that were rewritten"
    )
    parser.add_argument(
        "--strict", action="store_true", help="count differences between report pages"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
