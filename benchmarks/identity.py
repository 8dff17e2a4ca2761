"""Measure how well users are re-identified by their updates, and which defenses help.

    python benchmarks/identity.py --out DIR --data DATA        all cases; half a day on one core
    python benchmarks/identity.py --out DIR --data DATA --cases wisdm_random --seeds 2
    python benchmarks/identity.py --out DIR --data DATA --equal-views      the comparison alone

The first three cases begin with a comparison in equal views (`_identity.comparison`): every
attack chooses among as many settings on tuning seeds, and reports other seeds.

Each case is a federation of known users with several seeds, and as many controls with examples
permuted among all users. Cases and their seeds run one after another. Each seed is an audit in
a folder of its own, so an interrupted run resumes with the same command. The output is a report
for each case (report.html), DIR/table.md and, for scripts, DIR/summary.json.

A seed of the blogs has some 3 GB of transcripts, and 12 GB with defenses. With --lean they are
removed as soon as the seed is measured; its findings stay.

The blogs have 100 bloggers. 11 of them are copies of others, cannot be distinguished and are
left out. `benchmarks/identity_scale.py` measures memory and time for 100 users, 50 rounds and a
million parameters.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from _identity.bars import Check
from _identity.case import Case
from _identity.cases import CASES, COMPARED
from _identity.comparison import compare
from _identity.comparison_page import comparison_page
from _identity.labels_alone import MOST_CLASSES, labels_alone
from _identity.measured import merge_audits
from _identity.page import checks_table, page
from overheard.archive.atomic import write_text
from overheard.auditing.inputs import Resources, load_data
from overheard.auditing.progress import ProgressStep
from overheard.auditing.run import audit
from overheard.core.errors import AuditError
from overheard.findings.audit import Audit
from overheard.report.write import write_report


@dataclass(frozen=True)
class CaseResult:
    """The results of a case.

    Args:
        plan: plan with all seeds, as TOML; results of another plan are not reused.
        page: tables as Markdown.
        checks: figures compared with their bars.

    """

    plan: str
    page: str
    checks: tuple[Check, ...]


RESULTS, AUDIT = TypeAdapter(CaseResult), TypeAdapter(Audit)


def main() -> None:
    """Measure all missing cases and print the tables."""
    request = read_command_line()
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    results, comparisons = dict[str, CaseResult](), list[str]()
    try:
        with bars:
            for name in request.cases:
                if name in COMPARED:
                    comparisons.append(compare_case(request, name, bars))
                    print(f"{comparisons[-1]}\n", flush=True)
                if not request.equal_views:
                    results[name] = load_or_measure(request, name, bars)
                    print(f"{results[name].page}\n", flush=True)
    except AuditError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped: run the same command again to resume")
    write_text(request.out / "equal_views.md", "\n\n".join(comparisons) + "\n")
    if request.equal_views:
        return
    checks = [(name, check) for name, result in results.items() for check in result.checks]
    table = checks_table(checks)
    pages = "\n\n".join(result.page for result in results.values())
    write_text(request.out / "table.md", f"{table}\n\n{pages}\n")
    write_text(request.out / "summary.json", summary(results))
    print(table)


def compare_case(request: argparse.Namespace, name: str, bars: Progress) -> str:
    """Return the comparison of all attacks on a case in equal views, as Markdown."""
    case, task = CASES[name], bars.add_task(f"{name}, equal views", total=None)
    comparison = compare(
        case,
        request.out / name / "equal_views",
        resources_of(request),
        seeds_of(request, case),
        lambda step: bars.update(task, description=step),
    )
    bars.remove_task(task)
    return comparison_page(comparison)


def load_or_measure(request: argparse.Namespace, name: str, bars: Progress) -> CaseResult:
    """Return the results of a case, read from its folder if they are complete."""
    case, folder = CASES[name], request.out / name
    seeds = seeds_of(request, case)
    plan, path = case.plan(seeds), folder / "told.json"
    if path.exists():
        result = RESULTS.validate_json(path.read_text(encoding="utf-8"))
        if result.plan == plan.toml():
            return result
    result = measure(request, case, folder, seeds, bars)
    write_text(path, RESULTS.dump_json(result, indent=1).decode())
    return result


def measure(
    request: argparse.Namespace,
    case: Case,
    folder: Path,
    seeds: Sequence[int],
    bars: Progress,
) -> CaseResult:
    """Audit all seeds of a case and compare the results with its bars."""
    began, audits = time.perf_counter(), []
    for seed in seeds:
        audits.append(audit_seed(request, case, folder / str(seed), seed, bars))
    plan = case.plan(tuple(seeds))
    measured = merge_audits(plan, audits)
    write_report(measured.audit, folder)
    dataset = load_data(plan, resources_of(request))
    few = dataset.task.classes <= MOST_CLASSES
    labels = labels_alone(plan, dataset) if few else None
    return CaseResult(
        plan.toml(),
        page(measured, labels, time.perf_counter() - began),
        tuple(bar.check(measured) for bar in case.bars),
    )


def audit_seed(
    request: argparse.Namespace, case: Case, folder: Path, seed: int, bars: Progress
) -> Audit:
    """Return the audit of one seed, read from its folder if it is complete."""
    plan, path = case.plan((seed,)), folder / "audit.json"
    if path.exists():
        result = AUDIT.validate_json(path.read_text(encoding="utf-8"))
        if result.plan == plan.toml():
            return result
    bar = bars.add_task(f"{case.about}, seed {seed}")

    def on_step(step: ProgressStep) -> None:
        bars.update(bar, completed=step.done, total=step.total)

    result = audit(plan, folder, resources=resources_of(request), on_step=on_step)
    bars.remove_task(bar)
    write_text(path, AUDIT.dump_json(result).decode())
    if request.lean:
        for bulky in ("runs", "bank"):
            shutil.rmtree(folder / bulky, ignore_errors=True)
    return result


def seeds_of(request: argparse.Namespace, case: Case) -> tuple[int, ...]:
    """Return the seeds of a case."""
    return tuple(range(case.seeds if request.seeds is None else request.seeds))


def resources_of(request: argparse.Namespace) -> Resources:
    """Return the data folder and the number of workers."""
    return Resources(data=request.data, workers=request.workers)


def summary(results: dict[str, CaseResult]) -> str:
    """Return all checks as JSON."""
    checks = {name: result.checks for name, result in results.items()}
    return TypeAdapter(dict[str, tuple[Check, ...]]).dump_json(checks, indent=1).decode()


def read_command_line() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--data", type=Path, help="folder with data sets")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, help="seeds per case; default: those of the case")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument(
        "--equal-views", action="store_true", help="only compare attacks in equal views"
    )
    parser.add_argument(
        "--lean", action="store_true", help="remove transcripts after measuring"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
