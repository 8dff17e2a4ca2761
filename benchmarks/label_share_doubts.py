"""Measure how often amortised doubts its intervals, and how often they hold.

    python benchmarks/label_share_doubts.py --out DIR           all runs; an hour on one core
    python benchmarks/label_share_doubts.py --out DIR --runs 6  the first six
    python benchmarks/label_share_doubts.py --out DIR --report  the table of existing results

Each run is a federation of its own seed, data set, split, recipe, amount of auxiliary data and
observed round. It is attacked three times: with the attacker's assumptions right, with
distorted auxiliary examples, and with weak noise that clients add unknown to the attacker.
Results are stored run by run in DIR/doubts.jsonl, so an interrupted run resumes with the same
command.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import torch
from scipy.stats import t as student

from _label_shares.grid import DISTORTION, RECIPES, UNKNOWN_NOISE
from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.auditing.simulate import build_federation
from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.data.dataset import DataSource
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.digits import Digits
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.distortion import distort
from overheard.data.splits.dirichlet import Dirichlet
from overheard.federation.run import run
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.learning.threads import one_thread
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer

FIRST_SEED = 300
"""Seed of the first run of images and tables. The limits of the check were chosen with other
seeds: 101 to 104 for images, from 1000 on for tables and texts."""

FIRST_SEED_OF_TEXTS = 400

IMAGE_RUNS = 36

RUNS = 60
"""The runs after those of images are of tables and texts in turn."""

VIRTUAL = 240

ATTACK = Amortised(steps=100)

TRIALS = ("clean", "distorted", "noisy")

RESULTS = "doubts.jsonl"


@dataclass(frozen=True, slots=True)
class Trial:
    """One run; every cycle of settings has its own length, so that they combine evenly."""

    number: int

    @property
    def is_of_images(self) -> bool:
        """Whether the data are images; otherwise they are a table or texts."""
        return self.number < IMAGE_RUNS

    @property
    def source(self) -> DataSource:
        """The data set; the digits and WISDM are the smallest."""
        images = (Mnist(shrink=2), FashionMnist(shrink=2), Digits())
        others = (Wisdm(), AgNews(vocabulary=2000))
        return images[self.number % 3] if self.is_of_images else others[self.number % 2]

    @property
    def seed(self) -> int:
        """The seed of the run, which no other run has."""
        first = FIRST_SEED_OF_TEXTS if isinstance(self.source, AgNews) else FIRST_SEED
        return first + self.number

    @property
    def model(self) -> Model:
        """The network that the clients train."""
        return TextBag() if isinstance(self.source, AgNews) else Mlp((128, 64))

    @property
    def is_small(self) -> bool:
        """Whether the data set has few examples."""
        return isinstance(self.source, (Digits, Wisdm))

    @property
    def recipe(self) -> str:
        """The key of `RECIPES`."""
        cycle = self.number // 3 if self.is_of_images else self.number // 2
        return tuple(RECIPES)[cycle % 3]

    @property
    def auxiliary(self) -> int:
        """Auxiliary examples per class."""
        if self.is_of_images:
            return 40 if self.is_small else (1000, 20)[self.number // 9 % 2]
        return ((40, 80) if self.is_small else (1000, 100))[self.number // 6 % 2]

    @property
    def round(self) -> int:
        """The observed round, counted from 0."""
        cycle = self.number // 18 if self.is_of_images else self.number // 12
        return (0, 4)[cycle % 2]

    @property
    def alpha(self) -> float:
        """The parameter of the Dirichlet split."""
        cycle = self.number // 2 if self.is_of_images else self.number // 2 + self.number // 6
        return (0.5, 1.0, 2.0)[cycle % 3]

    @property
    def clients(self) -> int:
        """Number of clients."""
        return 8 if self.is_small else 20

    def plan(self) -> Plan:
        """Return the plan, with an arm in which clients add noise."""
        recipe: Recipe = RECIPES[self.recipe]
        return Plan(
            seeds=(self.seed,),
            data=DataPlan(
                source=self.source,
                split=Dirichlet(self.alpha),
                clients=self.clients,
                examples=100 if self.is_small else 256,
                auxiliary_per_class=self.auxiliary,
            ),
            training=TrainingPlan(
                model=self.model,
                rounds=self.round + 1,
                rate=recipe.rate,
                epochs=recipe.epochs,
                batch=recipe.batch,
                optimizer=recipe.optimizer,
            ),
            arms=(ArmPlan(name="noisy", defenses=(UNKNOWN_NOISE,)),),
            threats=(ThreatPlan(attacks=(ATTACK,)),),
        )


def main() -> None:
    """Measure all missing runs and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with data sets")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--report", action="store_true", help="only print existing results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = arguments.out / RESULTS
    if not arguments.report:
        done = {line["run"] for line in _load(results)}
        for number in range(arguments.runs):
            if number not in done:
                lines = "".join(
                    json.dumps(one) + "\n" for one in measure(number, arguments.data)
                )
                with results.open("a") as file:
                    file.write(lines)
    print(table(list(_load(results))))


def measure(number: int, folder: Path | None) -> list[dict[str, object]]:
    """Return coverage, error and doubt of each trial of one run."""
    trial = Trial(number)
    plan, resources = trial.plan(), Resources(folder, workers=1, device="cpu")
    dataset = load_data(plan, resources)
    (seed,) = plan.seeds
    partition = partition_for_plan(plan, dataset, seed)
    arms = {arm.name: arm for arm in plan.arms}
    cache, scorer, lines = MemoryTensorCache(), LabelSharesScorer(), []
    for kind in TRIALS:
        arm = arms["noisy"] if kind == "noisy" else plan.arms[0]
        federation = build_federation(plan, arm, seed, partition, dataset.task, resources)
        with tempfile.TemporaryDirectory() as run_folder, one_thread():
            transcript, truth = run(federation, Path(run_folder) / "run")
            auxiliary = partition.auxiliary
            if kind == "distorted":
                draws = Seed(seed).child("distortion")
                auxiliary = distort(auxiliary, dataset.task, DISTORTION, draws)
            knowledge = Knowledge(
                classes=dataset.task.classes,
                build_model=federation.build_model,
                auxiliary=auxiliary,
                recipe=federation.recipe,
                compute=ComputeSettings(Seed(seed).child("bank"), VIRTUAL, cache, workers=1),
            )
            targets = [client(one) for one in range(trial.clients)]
            view = transcript.seen_by(SERVER).during((trial.round,))
            claims = ATTACK.infer(view, targets, knowledge, Seed(seed).child("attack"))
        scores = []
        for target, claim in claims.items():
            true = scorer.true_claim(truth, target, (trial.round,), claim)
            guesses = scorer.guesses(true, knowledge)
            scores.append({s.name: s.value for s in scorer.score(claim, true, guesses)})
        lines.append(
            {
                "run": number,
                "trial": kind,
                "data": trial.source.name,
                "training": trial.recipe,
                "auxiliary": trial.auxiliary,
                "round": trial.round + 1,
                "doubted": scores[0]["doubted"],
                "reason": claims[targets[0]].doubt(),
            }
            | {key: fmean(score[key] for score in scores) for key in ("coverage", "l1")}
        )
    return lines


def table(lines: list[dict[str, object]]) -> str:
    """Return coverage and doubts by trial, and by the conditions of the clean trial."""
    rows = ["| trial | condition | runs | doubted | coverage (95 % interval over runs) |"]
    rows.append("|---|---|---|---|---|")
    for kind in TRIALS:
        own = [line for line in lines if line["trial"] == kind]
        rows += [_row(kind, "all", own)] if own else []
        for field in ("data", "training", "auxiliary", "round"):
            for value in dict.fromkeys(line[field] for line in own):
                part = [line for line in own if line[field] == value]
                rows.append(_row(kind, f"{field} {value}", part))
    return "\n".join(rows)


def _row(kind: str, condition: str, lines: list[dict[str, object]]) -> str:
    coverages = torch.tensor([line["coverage"] for line in lines]).tolist()
    mean, interval = fmean(coverages), ""
    if len(coverages) > 1:
        quantile = student.ppf(0.975, len(coverages) - 1)
        reach = quantile * stdev(coverages) / len(coverages) ** 0.5
        interval = f" ({mean - reach:.3f} to {min(1.0, mean + reach):.3f})"
    doubted = sum(bool(line["doubted"]) for line in lines)
    return f"| {kind} | {condition} | {len(lines)} | {doubted} | {mean:.3f}{interval} |"


def _load(path: Path) -> Iterator[dict[str, object]]:
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)


if __name__ == "__main__":
    main()
