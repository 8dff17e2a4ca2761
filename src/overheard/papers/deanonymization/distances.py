"""Figure 2: examples of one user lie nearer to each other than to those of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from overheard.auditing.supplies import load_data
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.drawing.plates import Panel, Plate
from overheard.learning.representations import representations_of_cohort
from overheard.learning.threads import one_thread
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.drawings import scatter_chart
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.world import (
    BLOGS,
    HURRIED,
    OMNIGLOT,
    WISDM,
    IdentityScenario,
)
from overheard.papers.deanonymization.worth import last_weights
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.numbers_table import numbers_table
from overheard.papers.reading import BOOTSTRAP, figure
from overheard.papers.runs import Runs
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
from overheard.statistics.estimate import estimate

MOST = 100
"""Examples of a user, and of others, between which distances are taken."""


@final
@dataclass(frozen=True, slots=True)
class Distances:
    """Median distances of each user's examples.

    Args:
        within: to each other.
        across: to those of others.

    """

    within: Float[np.ndarray, " users"]
    across: Float[np.ndarray, " users"]


@final
@dataclass(frozen=True, slots=True)
class DistancesExperiment(Experiment, Drawn):
    """Distances of features by the last global model, L2-normalised.

    Args:
        worlds: the data sets.
        reduced: those of a run in a hurry.
        name: of the figure.

    """

    worlds: tuple[IdentityScenario, ...] = (OMNIGLOT, BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    name: str = "figure2"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Variations in user data: distances within a user and to others"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The figure's numbers are lost. The paper's features are "
            "the 1,024 means of a MobileNet trained on ImageNet, on photos; ours are what the "
            "last layer of the federation's own last global model reads, scaled to length 1, "
            f"of {MOST} training examples a user at most and as many of others. Beside it "
            "stands what comes of the same examples dealt anew among all users."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set; its cheapest attack listens."""
        return {
            world.key: plan(
                world,
                people("random"),
                (every_update((ReidentifyKnn(updates="shadow", layer=world.layer),)),),
            )
            for world in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Means over users, and the share of users above the diagonal."""
        full = self.plans(quick=False)
        figures: list[Figure] = []
        for world in self.worlds:
            if world.key not in runs.audits:
                continue
            where = setting(world, runs.plans[world.key], full.get(world.key))
            for is_dealt, prefix, words in (
                (False, "", "users as they are"),
                (True, "dealt_anew_", "examples dealt anew among users"),
            ):
                told = _by_seed(runs, world, is_dealt)
                figures += _told(f"{world.key}_{prefix}", f"{where}; {words}", told)
        return tuple(figures)

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """A dot a user, of the first run."""
        plates = []
        for world in self.worlds:
            if world.key in runs.audits:
                one = _of_seed(runs, world, runs.plans[world.key].seeds[0], False)
                title = f"Figure 2: {world.name}"
                chart = scatter_chart(
                    one.within,
                    one.across,
                    "median distance within the user",
                    "median distance to others",
                    title,
                )
                told = _told(f"{world.key}_", f"{world.name}; first run", {0: one})
                plates.append(
                    Plate(
                        title,
                        "Above the line a user's examples lie nearer to each other than to "
                        "those of others.",
                        None,
                        (Panel("", chart),),
                        numbers_table(title, told),
                        True,
                    )
                )
        return Drawing(tuple(plates))


def distances(
    features: Float[Tensor, "examples dims"], users: Int[Tensor, " examples"], seed: Seed
) -> Distances:
    """Median L2 distances of each user with two examples or more.

    Args:
        features: of length 1.
        users: of each.
        seed: of the choice of examples.

    """
    within, across = [], []
    for user in np.unique(users.numpy()).tolist():
        mine = _some(users == user, seed.child("own", user))
        others = _some(users != user, seed.child("others", user))
        if len(mine) < 2:
            continue
        own = features[mine].double()
        pairs = torch.pdist(own)
        within.append(float(pairs.median()))
        across.append(float(torch.cdist(own, features[others].double()).median()))
    return Distances(np.array(within), np.array(across))


def _some(chosen: Tensor, seed: Seed) -> Int[Tensor, " rows"]:
    rows = chosen.nonzero().flatten()
    return rows[torch.randperm(len(rows), generator=seed.generator())[:MOST]]


def _by_seed(runs: Runs, world: IdentityScenario, is_dealt: bool) -> Mapping[int, Distances]:
    return {seed: _of_seed(runs, world, seed, is_dealt) for seed in runs.plans[world.key].seeds}


def _of_seed(runs: Runs, world: IdentityScenario, seed: int, is_dealt: bool) -> Distances:
    dataset = load_data(runs.plans[world.key], runs.resources)
    assert dataset.users is not None
    own = Seed(seed).child("distances")
    with one_thread():
        rows, users = _sample(dataset.users, own)
        features = _features(runs, world, dataset, seed, rows)
    if is_dealt:
        users = users[torch.randperm(len(users), generator=own.child("dealt").generator())]
    return distances(features, users, own.child("pairs"))


def _sample(users: Int[Tensor, " examples"], seed: Seed) -> tuple[Tensor, Tensor]:
    """Up to `MOST` rows of each user, so that others than these need no features."""
    rows = torch.cat(
        [
            _some(users == user, seed.child("sample", user))
            for user in np.unique(users.numpy()).tolist()
        ]
    )
    return rows, users[rows]


def _features(
    runs: Runs, world: IdentityScenario, dataset: Dataset, seed: int, rows: Tensor
) -> Float[Tensor, "examples dims"]:
    """What the last layer reads."""
    build = partial(world.model.build, dataset.task)
    weights = [last_weights(runs, world.key, UNDEFENDED, seed)]
    inputs = dataset.train.inputs[rows]
    (layers,) = representations_of_cohort(build, weights, inputs[:1])
    before_last = list(layers)[-2]
    (told,) = representations_of_cohort(build, weights, inputs, layer=before_last)
    return normalize(told[before_last].clone())


def _told(prefix: str, where: str, told: Mapping[int, Distances]) -> list[Figure]:
    seeds = np.concatenate([np.full(len(one.within), seed) for seed, one in told.items()])
    within = np.concatenate([one.within for one in told.values()])
    across = np.concatenate([one.across for one in told.values()])
    above = (across > within).astype(float)
    return [
        figure(
            f"{prefix}{name}",
            f"{where}, {words}",
            estimate(values, seeds, BOOTSTRAP),
            None,
            None,
        )
        for name, words, values in (
            ("within", "median distance within a user", within),
            ("across", "median distance to others", across),
            ("above_diagonal", "share of users with the second above the first", above),
        )
    ]
