"""Compare attacks on membership, with local differential privacy and without a defense.

    python benchmarks/membership.py --out DIR                  all cases, ten seeds each
    python benchmarks/membership.py --out DIR --cases mnist_10
    python benchmarks/membership.py --out DIR --report         the tables of existing results

Each seed is an audit in a folder of its own, so an interrupted run resumes with the same
command. Writes DIR/table.md. The settings of all attacks are their defaults. They were chosen
on the seeds 100 to 105 of the first two cases, and of variants with two epochs, batches of two
or Adam. The table starts at seed 200.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from overheard.archive.atomic import write_text
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import AuditError
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.iid import Iid
from overheard.defenses.local_dp import LocalDp
from overheard.epsilon.threshold_bound import bound_epsilon_by_thresholds
from overheard.findings.finding import Finding
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.lira_pooled import LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership

REFERENCE = "lira_pooled"
"""The attack that the others are compared with, seed by seed."""

ADAPTIVE = (GradientMembership(), LiraPooled())
"""Attacks that also run with knowledge of the defenses, where there are any."""

ATTACKS = (
    *ADAPTIVE,
    GradientMembership(trainings=0),
    Lira(),
    FedMia(),
    FedMia("confidence"),
    LossMembership(),
)

LOCAL_DP = LocalDp(clip=5, noise_multiplier=0.06)
"""Noise that hides single records from the confidence of a model, and little else."""

DELTA = 1e-5


@dataclass(frozen=True, slots=True)
class Case:
    """A federation of five clients whose records are all candidates.

    Args:
        about: description.
        source: data source.
        training: the model, and how clients train it, for two rounds.
        examples: examples of each client.
        is_balanced: whether clients and auxiliary examples have equal label shares, rather
            than those of the data set.

    """

    about: str
    source: DataSource
    training: TrainingPlan
    examples: int = 60
    is_balanced: bool = True

    def plan(self, seed: int) -> Plan:
        """Return the plan of one seed."""
        knowing = ThreatPlan(
            attacks=ADAPTIVE,
            by_round=False,
            knows=("auxiliary", "model", "recipe", "defenses"),
        )
        return Plan(
            title=self.about,
            seeds=(seed,),
            data=DataPlan(
                source=self.source,
                split=Iid(balanced=self.is_balanced),
                clients=5,
                examples=self.examples,
                auxiliary_per_class=20 if self.is_balanced else None,
                auxiliary=None if self.is_balanced else 200,
                candidates=CandidateSettings(members=self.examples, outsiders=1000),
            ),
            training=self.training,
            arms=(ArmPlan(name="local DP", defenses=(LOCAL_DP,)), ArmPlan(name="no defense")),
            threats=(ThreatPlan(attacks=ATTACKS, by_round=False), knowing),
        )


def sgd(model: Model, epochs: int) -> TrainingPlan:
    """Return two rounds of plain descent."""
    return TrainingPlan(model=model, rounds=2, rate=0.1, epochs=epochs, batch=10)


SMALL, FASHION, NET = Mnist(shrink=2), FashionMnist(shrink=2), Mlp(hidden=(32,))
ADAM = TrainingPlan(model=NET, rounds=2, rate=0.003, epochs=5, batch=20, optimizer="adam")

CASES = {
    "mnist_10": Case("MNIST, 10 local epochs", SMALL, sgd(NET, 10)),
    "mnist_1": Case("MNIST, 1 local epoch", SMALL, sgd(NET, 1)),
    "fashion_adam": Case("Fashion-MNIST, Adam, 5 local epochs", FASHION, ADAM, 100),
    "adult": Case("Adult, 10 local epochs", Adult(), sgd(NET, 10), is_balanced=False),
    "wisdm": Case("WISDM, 5 local epochs", Wisdm(), sgd(NET, 5), is_balanced=False),
    "ag_news": Case(
        "AG-News, 10 local epochs",
        AgNews(),
        sgd(TextBag(dim=16, hidden=16), 10),
        is_balanced=False,
    ),
    "fashion_conv": Case(
        "Fashion-MNIST, convolutions, 5 local epochs",
        FASHION,
        sgd(ConvNet(blocks=1, width=12), 5),
    ),
}


def main() -> None:
    """Measure all missing seeds and print the tables."""
    request = read_command_line()
    tables = []
    try:
        for name in request.cases:
            findings = measure(request, name)
            for arm in dict.fromkeys(finding.cell.arm for finding in findings):
                own = [finding for finding in findings if finding.cell.arm == arm]
                tables.append(table(f"{CASES[name].about}, {arm}", own))
    except AuditError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped: run the same command again to resume")
    text = "\n\n".join(tables) + "\n"
    write_text(request.out / "table.md", text)
    print(text)


def measure(request: argparse.Namespace, name: str) -> list[Finding]:
    """Return the findings of one case, over all existing or requested seeds."""
    findings = list[Finding]()
    for seed in range(request.first, request.first + request.seeds):
        folder = request.out / name / f"{seed}"
        if request.report and not (folder / "done").exists():
            continue
        resources = Resources(data=request.data, workers=request.workers)
        findings += audit(CASES[name].plan(seed), folder, resources=resources).findings
        write_text(folder / "done", "")
    return findings


def table(about: str, findings: Sequence[Finding]) -> str:
    """Return the scores of each attack: means over seeds, with 95 % intervals."""
    by_attack = defaultdict[str, list[Finding]](list)
    for finding in findings:
        # Without a defense, knowledge of the defenses gives the same claims again.
        if finding.cell.is_adaptive or "knowing" not in finding.cell.attack:
            by_attack[finding.cell.label].append(finding)
    reference = mean_by_seed(by_attack[REFERENCE], "membership_auc")
    lines = [
        f"### {about}: {len(reference)} seeds",
        "",
        f"| attack | AUC | minus {REFERENCE}, paired | found at 1 % | epsilon, at least |",
        "|---|---|---|---|---|",
    ]
    for label, own in by_attack.items():
        aucs = mean_by_seed(own, "membership_auc")
        gaps = [aucs[seed] - reference[seed] for seed in reference]
        found = mean_by_seed(own, "tpr_at_1_percent")
        bound = bound_epsilon_by_thresholds(own, DELTA)
        lines.append(
            f"| `{label}` | {interval(list(aucs.values()))} | "
            f"{'–' if label == REFERENCE else interval(gaps)} | "
            f"{interval(list(found.values()))} | "
            f"{'–' if bound is None else f'{bound.epsilon:.2f}'} |"
        )
    return "\n".join(lines)


def mean_by_seed(findings: Sequence[Finding], name: str) -> Mapping[int, float]:
    """Return the mean of a score over clients, by seed."""
    values = defaultdict[int, list[float]](list)
    for finding in findings:
        values[finding.cell.seed] += [one.value for one in finding.scores if one.name == name]
    return {seed: float(np.mean(group)) for seed, group in sorted(values.items())}


def interval(values: Sequence[float]) -> str:
    """Format the mean with its Student interval over seeds; the mean alone for one seed."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.3f}"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{mean:.3f} ({mean - half:.3f} to {mean + half:.3f})"


def read_command_line() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--data", type=Path, help="folder with data sets")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, default=10, help="federations per case")
    parser.add_argument("--first", type=int, default=200, help="the first seed")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--report", action="store_true", help="only print existing results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
