"""Claims about clients that report another number of examples than they have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import final

from overheard.core.messages import Update
from overheard.core.parties import client
from overheard.core.recipe import Recipe
from overheard.core.split import Split
from overheard.core.view import View
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.mnist import Mnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard_studies.measurements.label_share_runs import ATTACK, LabelShareRun
from overheard_studies.shift.measured import mean_over_runs
from overheard_studies.study import Measurement, MeasurementRun
from overheard_studies.values import ReproducedValue, make_value


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """Data, with how clients hold them.

    Args:
        source: the data set.
        model: the network that clients train.
        split: how labels are spread over clients.
        auxiliary: auxiliary examples per class.

    """

    source: DataSource
    model: Model
    split: Split
    auxiliary: int


UNLIKE = Dirichlet(0.3)

SETTINGS: Mapping[str, Setting] = {
    "texts": Setting(AgNews(vocabulary=2000), TextBag(), UNLIKE, 100),
    "table": Setting(Adult(), Mlp((64,)), UNLIKE, 100),
    "images": Setting(Mnist(shrink=2), Mlp((64,)), UNLIKE, 100),
    "people": Setting(Wisdm(), Mlp((64,)), ByUser(), 40),
}
"""Clients of "people" are people, each with movements of their own."""

RECIPES = {
    "sgd-1": Recipe(rate=0.1, epochs=1, batch=16),
    "adam-3": Recipe(rate=0.001, epochs=3, batch=16, optimizer="adam"),
}
"""By optimizer and local epochs."""

CLIENTS, EXAMPLES = 30, (100, 250)

MISREPORTING = 8
"""The first clients, which report another number."""

FACTORS = {"true": 1.0, "threefold": 3.0, "a third": 1 / 3}
"""The number that they report, over the one they have."""

SEEDS = (11, 12, 13, 14, 15)
"""Readings and limits of the doubt were chosen with the seeds 1 and 2."""


def _plan(kind: str, recipe: Recipe, seed: int) -> Plan:
    setting = SETTINGS[kind]
    return Plan(
        seeds=(seed,),
        data=DataPlan(
            source=setting.source,
            split=setting.split,
            clients=CLIENTS,
            examples=EXAMPLES,
            auxiliary_per_class=setting.auxiliary,
        ),
        training=TrainingPlan(
            model=setting.model,
            rounds=1,
            rate=recipe.rate,
            epochs=recipe.epochs,
            batch=recipe.batch,
            optimizer=recipe.optimizer,
        ),
        threats=(ThreatPlan(attacks=(ATTACK,)),),
    )


def _misreport(factor: float, view: View) -> View:
    """Return the view with the number that the first clients report times this factor."""
    liars = set(map(client, range(MISREPORTING)))
    messages = tuple(
        replace(one, body=replace(one.body, examples=round(one.body.examples * factor)))
        if one.sender in liars and isinstance(one.body, Update) and one.body.examples
        else one
        for one in view.messages
    )
    return replace(view, messages=messages)


def _measure(kind: str, recipe: str, run_of: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield coverage, error and doubt by report, of clients that misreport and of others."""
    resources = replace(run_of.resources, workers=1, device="cpu")
    scores: dict[str, list[Sequence[Mapping[str, float]]]] = {name: [] for name in FACTORS}
    for seed in run_of.seeds or SEEDS:
        run = LabelShareRun(_plan(kind, RECIPES[recipe], seed), resources)
        for report, factor in FACTORS.items():
            (of_run,) = run.score(
                run.plan.arms[0],
                run.partition.auxiliary,
                change_view=partial(_misreport, factor),
            )
            scores[report].append(of_run)
    for report, of_runs in scores.items():
        groups = {"misreporting": slice(MISREPORTING), "others": slice(MISREPORTING, None)}
        if report == "true":
            groups = {"all": slice(None)}
        for (group, of_group), name in product(groups.items(), ("doubted", "coverage", "l1")):
            means = tuple(fmean(one[name] for one in of_run[of_group]) for of_run in of_runs)
            words = f"{kind}, {recipe}; number reported: {report}; {group} clients: {name}"
            key = f"report_{kind}_{recipe}_{report}_{group}_{name}".replace(" ", "_")
            yield make_value(key, words, mean_over_runs(tuple(means)))


def misreport_measurements() -> tuple[Measurement, ...]:
    """Return a measurement for each kind of data and recipe; twenty minutes together."""
    return tuple(
        Measurement(f"report_{kind}_{recipe}", partial(_measure, kind, recipe))
        for kind, recipe in product(SETTINGS, RECIPES)
    )
