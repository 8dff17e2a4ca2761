"""How often intervals of label shares hold, by the number of auxiliary examples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from statistics import fmean

from overheard.core.recipe import Recipe
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.statistics.estimate import Estimate
from overheard_studies.conclusion import Conclusion
from overheard_studies.measurements.label_share_runs import ATTACK, LabelShareRun
from overheard_studies.runs import StudyRuns
from overheard_studies.shift.measured import mean_over_runs
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

KINDS: Mapping[str, tuple[DataSource, Model]] = {
    "texts": (AgNews(), TextBag()),
    "table": (Adult(), Mlp((64,))),
    "images": (Mnist(shrink=2), Mlp((64,))),
}

RECIPES = {
    "sgd-1": Recipe(rate=0.1, epochs=1, batch=16),
    "adam-3": Recipe(rate=0.001, epochs=3, batch=16, optimizer="adam"),
}
"""By optimizer and local epochs."""

AUXILIARY = (25, 100, 450)
"""Auxiliary examples per class."""

ALPHAS = (0.3, 0.7)

SEEDS = (11, 12, 13, 14, 15)
"""The method was chosen with the seeds 1 to 3."""

RIVALS = (MeanSoftmax(), BiasInversion())
"""Attacks without virtual clients."""

CLIENTS, EXAMPLES = 40, (100, 250)


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting, with a run for each of `SEEDS`."""

    kind: str
    auxiliary: int
    alpha: float
    recipe: str

    @property
    def name(self) -> str:
        """The name of its values."""
        return f"{self.kind}_{self.auxiliary}_{self.alpha}_{self.recipe}"

    def plan(self, seed: int) -> Plan:
        """Return the plan of one run."""
        (source, model), recipe = KINDS[self.kind], RECIPES[self.recipe]
        return Plan(
            seeds=(seed,),
            data=DataPlan(
                source=source,
                split=Dirichlet(self.alpha),
                clients=CLIENTS,
                examples=EXAMPLES,
                auxiliary_per_class=self.auxiliary,
            ),
            training=TrainingPlan(
                model=model,
                rounds=1,
                rate=recipe.rate,
                epochs=recipe.epochs,
                batch=recipe.batch,
                optimizer=recipe.optimizer,
            ),
            threats=(ThreatPlan(attacks=(ATTACK,)),),
        )


CELLS = tuple(Cell(*one) for one in product(KINDS, AUXILIARY, ALPHAS, RECIPES))


def _measure(cell: Cell, seed: int, run_of: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield coverage, width, doubt and errors of one run, as means over clients."""
    resources = replace(run_of.resources, workers=1, device="cpu")
    run = LabelShareRun(cell.plan(seed), resources)
    attacks = (ATTACK, *RIVALS)
    scores = run.score(run.plan.arms[0], run.partition.auxiliary, attacks)
    words = (
        f"{cell.kind}, {cell.recipe}, {cell.auxiliary} auxiliary examples a class, Dirichlet "
        f"{cell.alpha}, seed {seed}"
    )
    for name in ("coverage", "width", "doubted"):
        mean = fmean(score[name] for score in scores[0])
        yield make_value(f"{cell.name}_{seed}_{name}", f"{words}: {name}", mean)
    for attack, of_attack in zip(attacks, scores, strict=True):
        name = f"l1_{attack.name}"
        mean = fmean(score["l1"] for score in of_attack)
        yield make_value(f"{cell.name}_{seed}_{name}", f"{words}: {name}", mean)


def _coverage(auxiliary: int, runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    """Return the mean coverage over runs with so many examples, with Student's interval."""
    found = tuple(
        one.value
        for one in values
        if one.name.endswith("_coverage") and f"_{auxiliary}_" in one.name
    )
    return {f"{auxiliary}": mean_over_runs(found)}


def label_share_intervals() -> Study:
    """Return how often the intervals of amortised hold, by auxiliary examples; two hours."""
    return Study(
        "label_share_intervals",
        "Intervals of label shares, by the number of auxiliary examples",
        "It repeats no paper. 40 clients of 100 to 250 examples train for one round, in each "
        "combination of data, auxiliary examples, split and recipe, with five seeds that no "
        "setting of the attack was chosen on.",
        measurements=tuple(
            Measurement(f"{cell.name}_{seed}", partial(_measure, cell, seed))
            for seed in SEEDS
            for cell in CELLS
        ),
        conclusions=tuple(
            Conclusion(
                f"intervals_hold_with_{auxiliary}",
                f"With {auxiliary} auxiliary examples a class, 90 % of the intervals hold.",
                partial(_coverage, auxiliary),
                "around",
                0.9,
                tolerance=0.05,
                words="mean coverage over runs",
            )
            for auxiliary in AUXILIARY
        ),
    )
