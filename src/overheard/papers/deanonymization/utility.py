"""Table 2: what the federated model is worth, beside a centralised one and chance."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import torch

from overheard.auditing.supplies import deal_examples, load_data
from overheard.core.messages import Weights
from overheard.core.parties import SERVER
from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.partition.deal import Deal
from overheard.data.partition.people import PriorKind
from overheard.learning.cohort import Member
from overheard.learning.threads import one_thread
from overheard.learning.train import train_cohort
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import utility
from overheard.papers.deanonymization.world import HURRIED, WORLDS, IdentityScenario
from overheard.papers.deanonymization.worth import (
    guessed,
    mean_of_seeds,
    test_of,
    worth,
    worth_of_arm,
)
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import figure
from overheard.papers.runs import Runs
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn

WITHIN: tuple[PriorKind, ...] = ("random", "chronological")


@final
@dataclass(frozen=True, slots=True)
class UtilityExperiment(Experiment):
    """The last global model of each federation, and one trained on all its data in one place.

    Args:
        worlds: the data sets.
        reduced: those of a run in a hurry.
        priors: how users' data are parted.
        name: of the table.

    """

    worlds: tuple[IdentityScenario, ...] = WORLDS
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    priors: tuple[PriorKind, ...] = WITHIN
    name: str = "table2"

    @property
    def title(self) -> str:
        """What the table shows."""
        return "What the model is worth: federated, centralised, and chance"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The centralised model starts from the same weights and "
            "trains at the same rate and batch on the examples of all devices in one place, as "
            "many passes as a device makes in the federation on average. Its nearest "
            "neighbours are left out. Measures: top-5 accuracy of the next word, accuracy of "
            "characters (the paper: average precision of several labels), mean absolute error "
            "of the expected rating, of three in place of five. Chance is a label drawn with "
            "all alike."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set and prior; its cheapest attack listens."""
        return {
            f"{world.key}_{prior}": plan(
                world,
                people(prior),
                (every_update((ReidentifyKnn(updates="shadow", layer=world.layer),)),),
            )
            for world in (self.reduced if quick else self.worlds)
            for prior in self.priors
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """The three of each."""
        full = self.plans(quick=False)
        return tuple(
            one
            for name, world, prior in self._run(runs)
            for one in _told(
                runs, name, world, prior, setting(world, runs.plans[name], full.get(name))
            )
        )

    def _run(self, runs: Runs) -> Iterator[tuple[str, IdentityScenario, PriorKind]]:
        for world in self.worlds:
            for prior in self.priors:
                if f"{world.key}_{prior}" in runs.audits:
                    yield f"{world.key}_{prior}", world, prior


def _told(
    runs: Runs, name: str, world: IdentityScenario, prior: PriorKind, where: str
) -> tuple[Figure, ...]:
    run = runs.plans[name]
    dataset = load_data(run, runs.resources)
    test = test_of(world, dataset)
    better: Better = "lower" if world.utility == "absolute_error" else "higher"
    with one_thread():
        values = [
            worth(world, dataset.task, _centralised(runs, name, dataset, seed), test)
            for seed in run.seeds
        ]
    measured = world.utility.replace("_", " ")
    chance = guessed(world.utility, test.labels, dataset.task.classes)
    return (
        figure(
            f"{name}_federated",
            f"{where}; {measured} of the last global model",
            mean_of_seeds(worth_of_arm(runs, name, UNDEFENDED, world, dataset)),
            utility(world.paper, prior, "federated"),
            better,
        ),
        figure(
            f"{name}_centralised",
            f"{where}; {measured} of a model trained in one place",
            mean_of_seeds(values),
            utility(world.paper, prior, "centralised"),
            better,
        ),
        Figure(
            f"{name}_chance",
            f"{where}; {measured} of a label by chance",
            chance,
            None,
            None,
            utility(world.paper, prior, "chance"),
            better,
        ),
    )


def _centralised(runs: Runs, name: str, dataset: Dataset, seed: int) -> Weights:
    """A model trained on all that the federation's devices hold, from the same start."""
    run = runs.plans[name]
    dealt = deal_examples(run, dataset, seed)
    start = runs.transcript(name, UNDEFENDED, seed).seen_by(SERVER).broadcasts()[0]
    training = run.training
    passes = max(1, round(training.rounds * training.participation))
    (trained,) = train_cohort(
        partial(training.model.build, dataset.task),
        start,
        dealt.pool,
        [Member("everyone", _held(dealt))],
        replace(training.recipe, epochs=passes),
        seed=Seed(seed).child("centralised"),
        round=0,
        workers=1,
    )
    return {name: weights + trained.delta[name] for name, weights in start.items()}


def _held(dealt: Deal) -> torch.Tensor:
    devices = () if dealt.who is None else dealt.who.devices
    return torch.cat([*dealt.rows[0], *devices])
