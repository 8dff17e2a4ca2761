"""How well a shift is told from an exchange of examples, over many federations.

    python benchmarks/shift.py --out DIR                 all cases, 60 seeds; hours of one core
    python benchmarks/shift.py --out DIR --cases quick   some of them
    python benchmarks/shift.py --out DIR --report        the table of what is there

Each seed is a federation whose client 1 shifts, and its control: the same examples exchanged at
the same times, and no shift. Client 0 listens. Runs go ten seeds at a time, each block an audit
in a folder of its own: stopped at any moment and given again, the same command goes on. Writes
DIR/table.md. `quick` is timed: its figure is the wall time of 120 federations.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from overheard.archive.atomic import write_text
from overheard.auditing.progress import Step
from overheard.auditing.run import audit
from overheard.auditing.summary import summarise
from overheard.auditing.supplies import Resources
from overheard.core.errors import AuditError
from overheard.core.seeds import Seed
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.iid import Iid
from overheard.findings.finding import Audit, Finding
from overheard.findings.row import Row
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.shift_census import ShiftCensus
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual import VirtualPlan
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard.statistics.exact import proportion

OURS = ShiftTracking()

ATTACKS = (
    OURS,
    *(
        ShiftTrend(information=information, metric=metric)
        for information in ("gradients", "weights", "representations")
        for metric in ("cosine", "cmd")
    ),
    ValidationShift(measure="loss"),
    ValidationShift(measure="accuracy"),
)

SCORES = (
    "auc",
    "auc_told",
    "power_at_5",
    "detection_rate",
    "median_delay",
    "round_error",
    "direction_detected",
    "risen_error",
    "risen_coverage",
)


ALIKE = Iid()


@dataclass(frozen=True, slots=True)
class Case:
    """A federation, and the shifts that are tried on it.

    Args:
        source: its data.
        model: what learns.
        clients: how many, the listener among them.
        examples: of each.
        auxiliary: of the listener.
        rounds: how many; the shift comes in the middle, exchanges a quarter before and after.
        even: percent of labels with an even number after the shift, of what had 50; 50 itself
            is an exchange and no shift, which only our attack listens to.
        shifting: how many clients shift.
        about: in words.
        split: who holds what at first.
        block: seeds an audit: what is lost at a stop is little, and federations train side by
            side.

    """

    source: DataSource
    model: Model
    clients: int
    examples: int
    auxiliary: int
    rounds: int
    even: tuple[int, ...]
    shifting: int = 1
    about: str = ""
    split: Iid = ALIKE
    block: int = 10

    def plan(self, even: int, seeds: Sequence[int], virtual: int) -> Plan:
        """The audit of some seeds at one severity."""
        middle, quarter = self.rounds // 2, self.rounds // 4
        weights = tuple(
            float(even if label % 2 == 0 else 100 - even)
            for label in range(2 if isinstance(self.source, Adult) else 10)
        )
        shifts = [
            DataShift(
                client=client,
                round=number,
                weights=weights if number == middle and even != 50 else None,
            )
            for client in range(1, 1 + self.shifting)
            for number in (middle - quarter, middle, middle + quarter)
        ]
        return Plan(
            title=f"{self.about}, {even}-{100 - even}",
            seeds=tuple(seeds),
            data=DataPlan(
                source=self.source,
                split=self.split,
                clients=self.clients,
                examples=self.examples,
                auxiliary=self.auxiliary,
                test=1000,
                shifts=tuple(shifts),
            ),
            training=TrainingPlan(
                model=self.model,
                rounds=self.rounds,
                optimizer="adam",
                rate=1e-4,
                epochs=2,
                batch=32,
            ),
            threats=(
                ThreatPlan(
                    observers=("client/0",),
                    about="cohort",
                    attacks=ATTACKS if even != 50 else (OURS,),
                    by_round=False,
                    virtual=VirtualPlan(clients=virtual),
                ),
            ),
        )


HALF, FASHION, NET = Mnist(shrink=2), FashionMnist(shrink=2), Mlp(hidden=(64,))

CASES = {
    "quick": Case(HALF, NET, 2, 2000, 4000, 20, (70,), about="MNIST, n = 2, 2,000 examples"),
    "mnist_n2": Case(
        HALF, NET, 2, 6700, 12000, 20, (70, 60), about="MNIST, n = 2, 6,700 examples"
    ),
    "mnist_n5": Case(
        HALF, NET, 5, 2600, 12000, 20, (80, 70), about="MNIST, n = 5, 2,600 examples"
    ),
    "mnist_n10": Case(
        HALF, NET, 10, 1300, 12000, 20, (80, 70), 3, about="MNIST, n = 10, 1,300, 3 shift"
    ),
    "fashion_n2": Case(
        FASHION, NET, 2, 6700, 12000, 20, (70, 60), about="Fashion-MNIST, n = 2, 6,700"
    ),
    "nulls": Case(
        HALF, NET, 2, 1000, 3000, 12, (50,), about="MNIST, n = 2, 1,000 examples", block=50
    ),
    "adult_n2": Case(
        Adult(),
        ShiftCensus(),
        2,
        3900,
        6000,
        40,
        (70, 60),
        about="Adult, n = 2, 3,900",
        split=Iid(balanced=False),
    ),
}


def main() -> None:
    """Measure what is missing, block by block, and print the table."""
    request = read_command_line()
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    lines = []
    try:
        with bars:
            for name in request.cases:
                for even in CASES[name].even:
                    lines.append(measured(request, name, even, bars))
    except AuditError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped: give the same command again to go on")
    text = "\n\n".join(lines) + "\n"
    write_text(request.out / "table.md", text)
    print(text)


def measured(request: argparse.Namespace, name: str, even: int, bars: Progress) -> str:
    """The table of one case at one severity, over all blocks that are there or wanted."""
    case, began = CASES[name], time.perf_counter()
    resources = Resources(
        data=request.data, workers=request.workers, bank=request.out / "bank" / name
    )
    audits = []
    for first in range(request.first, request.first + request.seeds, case.block):
        seeds = range(first, min(first + case.block, request.first + request.seeds))
        folder = request.out / name / f"{even}" / f"{first}"
        if request.report and not (folder / "done").exists():
            continue
        bar = bars.add_task(f"{name} {even}-{100 - even}, seeds {first} on")

        def tell(step: Step, bar: object = bar) -> None:
            bars.update(bar, completed=step.done, total=step.total)

        plan = case.plan(even, seeds, request.virtual)
        audits.append(audit(plan, folder, resources=resources, on_step=tell))
        write_text(folder / "done", "")
    return table(case, even, audits, time.perf_counter() - began)


def table(case: Case, even: int, audits: Sequence[Audit], seconds: float) -> str:
    """What each attack came to, with 95 % intervals."""
    findings = [finding for one in audits for finding in one.findings]
    runs = len({(f.cell.seed, f.cell.is_control) for f in findings})
    rows = {(row.attack, row.score): row for row in summarise(findings, Seed(0))}
    lines = [
        f"### {case.about}: even labels to {even} %",
        "",
        f"{runs} federations of {case.rounds} rounds, {seconds:.0f} s.",
        "",
        "| attack | " + " | ".join(SCORES) + " | false alarms where nothing shifts |",
        "|---|" + "---|" * (len(SCORES) + 1),
    ]
    for attack in dict.fromkeys(finding.cell.attack for finding in findings):
        cells = [told(rows.get((attack, score))) for score in SCORES]
        alarms = false_alarms([f for f in findings if f.cell.attack == attack])
        lines.append(f"| {attack.split(', about')[0]} | {' | '.join(cells)} | {alarms} |")
    return "\n".join(lines)


def told(row: Row | None) -> str:
    """A figure with its interval; – where it was not measured."""
    if row is None:
        return "–"
    value = row.value
    if value.low is None or value.high is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def false_alarms(findings: Sequence[Finding]) -> str:
    """Alarms in controls, with the exact binomial interval."""
    controls = [
        finding.timeline
        for finding in findings
        if finding.true_since is None and finding.timeline is not None
    ]
    if not controls or controls[0].threshold is None:
        return "–"
    alarms = sum(one.alarm is not None for one in controls)
    share = proportion(alarms, len(controls))
    return f"{alarms} of {len(controls)} [{share.low:.3f}, {share.high:.3f}]"


def read_command_line() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for what is measured")
    parser.add_argument("--data", type=Path, help="folder with data sets")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, default=60, help="federations of each kind a case")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--virtual", type=int, default=32, help="virtual clients a round")
    parser.add_argument("--workers", type=int, help="processes; left out: one a core")
    parser.add_argument("--report", action="store_true", help="only what is there already")
    return parser.parse_args()


if __name__ == "__main__":
    main()
