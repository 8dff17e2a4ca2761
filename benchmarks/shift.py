"""Measure how well a shift is distinguished from an exchange of examples.

    python benchmarks/shift.py --out DIR                 all cases, 60 seeds; hours on one core
    python benchmarks/shift.py --out DIR --cases quick   some cases
    python benchmarks/shift.py --out DIR --report        the table of existing results
    python benchmarks/shift.py --out DIR --cases rivals --first 8000 --seeds 40

Each seed is a federation in which client 1 shifts, and its two controls, which exchange
examples at the same times without a shift. One has natural draws, one copies the label counts.
Client 0 is the observer. The rivals run as published, and standardised round by round by
simulated runs without a shift, as `shift_tracking` is. The column "AUC, other controls" shows
what the published statistic would reach on the scale of the other seeds' real controls, which
no attacker has. Blocks of ten seeds run
as audits in folders of their own, so an interrupted run resumes with the same command. Writes
DIR/table.md. `quick` is timed: its figure is the wall-clock time of 120 federations.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from overheard.archive.atomic import write_text
from overheard.auditing.inputs import Resources
from overheard.auditing.progress import ProgressStep
from overheard.auditing.run import audit
from overheard.auditing.summary import summarise
from overheard.core.attack import Attack
from overheard.core.errors import AuditError
from overheard.core.seeds import Seed
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.iid import Iid
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.score_row import ScoreRow
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.shift_census import ShiftCensus
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.statistics.pairs import PairedEvidence, pair_runs
from overheard.questions.shift.statistics.ranks import estimate_auc
from overheard.statistics.exact_intervals import estimate_proportion

OURS = ShiftTracking()

TINY = 1e-9
"""Added to statistics before their logarithm, and to deviations."""

SIMULATED_RUNS = 39
"""Number of simulated runs without a shift. They give the mean and spread of each round, which
standardise the statistics of rivals."""

ATTACKS = (
    OURS,
    *(
        ShiftTrend(information=information, metric=metric, simulated_runs=runs)
        for runs in (0, SIMULATED_RUNS)
        for information in ("gradients", "weights", "representations")
        for metric in ("cosine", "cmd")
    ),
    *(
        ValidationShift(measure=measure, simulated_runs=runs)
        for runs in (0, SIMULATED_RUNS)
        for measure in ("loss", "accuracy")
    ),
)

CHOICES = {"all": ATTACKS, "ours": (OURS,), "rivals": ATTACKS[1:]}

SCORES = (
    "auc",
    "auc_exact",
    "auc_told",
    "power_at_5",
    "detection_rate",
    "median_delay",
    "round_error",
    "direction_detected",
    "risen_error",
    "risen_coverage",
)


IID = Iid()


@dataclass(frozen=True, slots=True)
class Case:
    """A federation, and the shifts that are tested on it.

    Args:
        source: data source.
        model: trained model.
        clients: number of clients, including the observer.
        examples: examples per client.
        auxiliary: auxiliary examples of the observer.
        rounds: number of rounds; the shift is in the middle, exchanges a quarter before and
            after.
        even: percentage of even labels after the shift, 50 before; 50 is an exchange without
            shift, natural as all others, which only Overheard's attack is given.
        shifting: number of clients that shift.
        about: description.
        split: initial partition.
        block: seeds per audit: small enough to lose little if stopped, large enough to train
            federations together.

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
    split: Iid = IID
    block: int = 10

    def plan(
        self,
        even: int,
        seeds: Sequence[int],
        virtual: int,
        attacks: Sequence[Attack[Shift]],
    ) -> Plan:
        """Return the plan of some seeds at one severity."""
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
                    attacks=tuple(attacks),
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
    "rivals": Case(
        HALF, NET, 2, 1000, 2000, 16, (70, 60), about="MNIST, n = 2, 1,000 examples, 16 rounds"
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
    """Measure all missing blocks and print the table."""
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
                    lines.append(measure(request, name, even, bars))
    except AuditError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped: run the same command again to resume")
    text = "\n\n".join(lines) + "\n"
    write_text(request.out / "table.md", text)
    print(text)


def measure(request: argparse.Namespace, name: str, even: int, bars: Progress) -> str:
    """Return the table of one case at one severity, over all existing or requested blocks."""
    case, began = CASES[name], time.perf_counter()
    resources = Resources(
        data=request.data, workers=request.workers, simulation_cache=request.out / "bank" / name
    )
    audits = []
    for first in range(request.first, request.first + request.seeds, case.block):
        seeds = range(first, min(first + case.block, request.first + request.seeds))
        folder = request.out / name / request.attacks / f"{even}" / f"{first}"
        if request.report and not (folder / "done").exists():
            continue
        bar = bars.add_task(f"{name} {even}-{100 - even}, seeds {first} on")

        def on_step(step: ProgressStep, bar: object = bar) -> None:
            bars.update(bar, completed=step.done, total=step.total)

        attacks = (OURS,) if even == 50 else CHOICES[request.attacks]
        plan = case.plan(even, seeds, request.virtual, attacks)
        audits.append(audit(plan, folder, resources=resources, on_step=on_step))
        write_text(folder / "done", "")
    return table(case, even, audits, time.perf_counter() - began)


def table(case: Case, even: int, audits: Sequence[Audit], seconds: float) -> str:
    """Return the scores of each attack with 95 % intervals."""
    findings = [finding for audited in audits for finding in audited.findings]
    runs = len({(f.cell.seed, f.cell.control, f.cell.control_number) for f in findings})
    rows = {(row.attack, row.score): row for row in summarise(findings, Seed(0))}
    lines = [
        f"### {case.about}: even labels to {even} %",
        "",
        f"{runs} federations of {case.rounds} rounds, {seconds:.0f} s.",
        "",
        f"| attack | {' | '.join(SCORES)} | AUC, other controls | false alarms, natural | "
        "false alarms, exact |",
        "|---|" + "---|" * (len(SCORES) + 3),
    ]
    for attack in dict.fromkeys(finding.cell.attack for finding in findings):
        cells = [format_value(rows.get((attack, score))) for score in SCORES]
        own = [f for f in findings if f.cell.attack == attack]
        cells += [
            auc_on_scale_of_controls(own),
            false_alarms([f for f in own if is_natural_null(f)]),
            false_alarms([f for f in own if f.cell.control == "exact"]),
        ]
        lines.append(f"| {attack.split(', about')[0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def auc_on_scale_of_controls(findings: Sequence[Finding]) -> str:
    """Return the AUC of peaks, each round on the scale of the other seeds' natural controls.

    Logarithms are centred and scaled by those of the other controls in the same round. That
    scale comes from real runs, so this is no attack but an upper reference. – if a statistic is
    below 0, as one that is standardised already.
    """
    pairs = pair_runs(findings)
    shifted = np.array([pair.shifted.statistic for pair in pairs])  # (pairs, rounds)
    control = np.array([pair.controls[0].statistic for pair in pairs])
    if len(pairs) < 3 or min(shifted.min(), control.min()) < 0:
        return "–"
    peaks: list[list[float]] = [[], []]
    for place in range(len(pairs)):
        others = np.log(np.delete(control, place, 0) + TINY)
        centre, scale = others.mean(0), others.std(0, ddof=1) + TINY
        for found, run in zip(peaks, (shifted, control), strict=True):
            found.append(float(((np.log(run[place] + TINY) - centre) / scale).max()))
    numbers = np.arange(len(pairs))
    evidence = PairedEvidence(np.array(peaks[0]), np.array(peaks[1]), numbers, numbers)
    return f"{estimate_auc(evidence, Seed(0)).mean:.3f}"


def format_value(row: ScoreRow | None) -> str:
    """Format a value with its interval; – if it was not measured."""
    if row is None:
        return "–"
    value = row.value
    if value.low is None or value.high is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def is_natural_null(finding: Finding) -> bool:
    """Return whether a finding is of a run with natural draws and without a shift."""
    cell = finding.cell
    return cell.control == "natural" or (not cell.is_control and finding.true_since is None)


def false_alarms(findings: Sequence[Finding]) -> str:
    """Count alarms in controls, with the exact binomial interval."""
    controls = [
        finding.timeline
        for finding in findings
        if finding.timeline is not None and finding.timeline.threshold is not None
    ]
    if not controls:
        return "–"
    alarms = sum(timeline.alarm is not None for timeline in controls)
    share = estimate_proportion(alarms, len(controls))
    return f"{alarms} of {len(controls)} [{share.low:.3f}, {share.high:.3f}]"


def read_command_line() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--data", type=Path, help="folder with data sets")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument(
        "--seeds", type=int, default=60, help="federations of each kind per case"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--virtual", type=int, default=32, help="virtual clients per round")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument(
        "--attacks", choices=CHOICES, default="all", help="attacks; each choice has its folder"
    )
    parser.add_argument("--report", action="store_true", help="only print existing results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
