"""How well people are recognised by what they send, and what hides them.

    python benchmarks/identity.py --out DIR --data DATA        all cases; half a day of one core
    python benchmarks/identity.py --out DIR --data DATA --cases wisdm_random --seeds 2

Each case is a federation of people under some seeds, and as many controls in which examples are
dealt anew among all. Cases go one after another, and seeds within them, each seed an audit in a
folder of its own: stopped at any moment and given again, the same command goes on. Leaves a
page to open for each case (report.html), DIR/table.md and, for scripts, DIR/summary.json.

A seed of the blogs has some 3 GB of transcripts, and 12 GB behind defenses. With --lean they
are removed as soon as the seed is measured; its findings stay.

Blogs are to be told apart with 100 users in mind: 11 of the 100 bloggers are copies of others,
whom nobody could tell apart, and are left out. How much memory and time 100 users of 50 rounds
of a million parameters take is measured by `benchmarks/identity_scale.py`.
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
from _identity.cases import CASES
from _identity.labels_alone import MOST_CLASSES, labels_alone
from _identity.measured import DRAWS, together
from _identity.page import checks_table, page
from overheard.archive.atomic import write_text
from overheard.auditing.progress import Step
from overheard.auditing.run import audit
from overheard.auditing.supplies import Resources, load_data
from overheard.core.errors import AuditError
from overheard.findings.finding import Audit
from overheard.report.write import write_report


@dataclass(frozen=True)
class Told:
    """What a case came to.

    Args:
        plan: of all its seeds, as TOML: another one's figures are none of this.
        page: its tables.
        checks: its bars.

    """

    plan: str
    page: str
    checks: tuple[Check, ...]


TOLD, AUDIT = TypeAdapter(Told), TypeAdapter(Audit)


def main() -> None:
    """Measure what is missing, case by case, and print the tables."""
    request = read_command_line()
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    told = dict[str, Told]()
    try:
        with bars:
            for name in request.cases:
                told[name] = tell(request, name, bars)
                print(f"{told[name].page}\n", flush=True)
    except AuditError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped: give the same command again to go on")
    checks = [(name, check) for name, one in told.items() for check in one.checks]
    table = checks_table(checks)
    pages = "\n\n".join(one.page for one in told.values())
    write_text(request.out / "table.md", f"{table}\n\n{pages}\n")
    write_text(request.out / "summary.json", summary(told))
    print(table)


def tell(request: argparse.Namespace, name: str, bars: Progress) -> Told:
    """What a case came to, from its folder where it is whole there."""
    case, folder = CASES[name], request.out / name
    seeds = tuple(range(case.seeds if request.seeds is None else request.seeds))
    plan, kept = case.plan(seeds), folder / "told.json"
    if kept.exists():
        told = TOLD.validate_json(kept.read_text(encoding="utf-8"))
        if told.plan == plan.toml():
            return told
    told = measure(request, case, folder, seeds, bars)
    write_text(kept, TOLD.dump_json(told, indent=1).decode())
    return told


def measure(
    request: argparse.Namespace,
    case: Case,
    folder: Path,
    seeds: Sequence[int],
    bars: Progress,
) -> Told:
    """Audit a case seed by seed, and hold it against its bars."""
    began, audits = time.perf_counter(), []
    for seed in seeds:
        audits.append(of_seed(request, case, folder / str(seed), seed, bars))
    plan = case.plan(tuple(seeds))
    measured = together(plan, audits)
    write_report(measured.audit, folder, DRAWS)
    dataset = load_data(plan, resources_of(request))
    few = dataset.task.classes <= MOST_CLASSES
    labels = labels_alone(plan, dataset, DRAWS) if few else None
    return Told(
        plan.toml(),
        page(measured, labels, time.perf_counter() - began),
        tuple(bar.check(measured) for bar in case.bars),
    )


def of_seed(
    request: argparse.Namespace, case: Case, home: Path, seed: int, bars: Progress
) -> Audit:
    """The audit of one seed, from its folder where it is whole there."""
    plan, kept = case.plan((seed,)), home / "audit.json"
    if kept.exists():
        done = AUDIT.validate_json(kept.read_text(encoding="utf-8"))
        if done.plan == plan.toml():
            return done
    bar = bars.add_task(f"{case.about}, seed {seed}")

    def on_step(step: Step) -> None:
        bars.update(bar, completed=step.done, total=step.total)

    done = audit(plan, home, resources=resources_of(request), on_step=on_step)
    bars.remove_task(bar)
    write_text(kept, AUDIT.dump_json(done).decode())
    if request.lean:
        for bulky in ("runs", "bank"):
            shutil.rmtree(home / bulky, ignore_errors=True)
    return done


def resources_of(request: argparse.Namespace) -> Resources:
    """Where the data lie, and what the work is done on."""
    return Resources(data=request.data, workers=request.workers)


def summary(told: dict[str, Told]) -> str:
    """All bars, for scripts."""
    checks = {name: one.checks for name, one in told.items()}
    return TypeAdapter(dict[str, tuple[Check, ...]]).dump_json(checks, indent=1).decode()


def read_command_line() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for what is measured")
    parser.add_argument("--data", type=Path, help="folder with data sets")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, help="federations a case; left out: its own")
    parser.add_argument("--workers", type=int, help="processes; left out: one a core")
    parser.add_argument("--lean", action="store_true", help="remove transcripts when measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
