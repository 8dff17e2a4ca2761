"""Figure 2: distances between examples of one user and between those of several users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from overheard.auditing.inputs import load_data
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.drawing.figures import Panel, ReportFigure
from overheard.learning.representations import representations_of_models
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
from overheard.statistics.estimate import estimate_mean

MOST = 100
"""Largest number of examples of a user, and of others, in the distances."""


@final
@dataclass(frozen=True, slots=True)
class Distances:
    """Median distances of each user's examples.

    Args:
        within: to examples of the same user.
        across: to examples of other users.

    """

    within: Float[np.ndarray, " users"]
    across: Float[np.ndarray, " users"]


@final
@dataclass(frozen=True, slots=True)
class DistancesExperiment(Experiment, Drawn):
    """Distances of features of the last global model, with L2 norm 1.

    Args:
        worlds: data sets with their federations.
        reduced: the same for a quick run.
        name: name of the figure.

    """

    worlds: tuple[IdentityScenario, ...] = (OMNIGLOT, BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    name: str = "figure2"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Variations in user data: distances within a user and to other users"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common(self.worlds)} The figure's values are lost. The paper's features are the "
            "1,024 means of a MobileNet trained on ImageNet, for photos. Here they are the "
            "inputs of the last layer of the federation's last global model, scaled to length "
            f"1, for at most {MOST} training examples of each user and as many of others. A "
            "control redistributes the same examples at random among all users."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set, with the cheapest attack."""
        return {
            scenario.key: plan(
                scenario,
                people("random"),
                (every_update((ReidentifyKnn(updates="shadow", layer=scenario.layer),)),),
            )
            for scenario in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return means over users, and the share of users above the diagonal."""
        full = self.plans(quick=False)
        values: list[Figure] = []
        for scenario in self.worlds:
            if scenario.key not in runs.audits:
                continue
            context = setting(scenario, runs.plans[scenario.key], full.get(scenario.key))
            for is_permuted, prefix, words in (
                (False, "", "original users"),
                (True, "dealt_anew_", "examples redistributed at random among users"),
            ):
                by_seed = _by_seed(runs, scenario, is_permuted)
                values += _distance_values(
                    f"{scenario.key}_{prefix}", f"{context}; {words}", by_seed
                )
        return tuple(values)

    def drawing(self, runs: Runs, values: Sequence[Figure]) -> Drawing:
        """Draw one dot per user of the first run."""
        page_figures = []
        for scenario in self.worlds:
            if scenario.key in runs.audits:
                one = _of_seed(runs, scenario, runs.plans[scenario.key].seeds[0], False)
                title = f"Figure 2: {scenario.name}"
                chart = scatter_chart(
                    one.within,
                    one.across,
                    "median distance within the user",
                    "median distance to other users",
                    title,
                )
                values = _distance_values(
                    f"{scenario.key}_", f"{scenario.name}; first run", {0: one}
                )
                page_figures.append(
                    ReportFigure(
                        title,
                        "The examples of users above the line are closer to each other than "
                        "to those of others.",
                        None,
                        (Panel("", chart),),
                        numbers_table(title, values),
                        True,
                    )
                )
        return Drawing(tuple(page_figures))


def distances(
    features: Float[Tensor, "examples dims"], users: Int[Tensor, " examples"], seed: Seed
) -> Distances:
    """Measure the median L2 distances of each user with two or more examples.

    Args:
        features: features with L2 norm 1.
        users: user of each example.
        seed: seed of the choice of examples.

    """
    within, across = [], []
    for user in np.unique(users.numpy()).tolist():
        own_rows = _draw_rows(users == user, seed.child("own", user))
        other_rows = _draw_rows(users != user, seed.child("others", user))
        if len(own_rows) < 2:
            continue
        own_features = features[own_rows].double()
        pairs = torch.pdist(own_features)
        within.append(float(pairs.median()))
        across.append(float(torch.cdist(own_features, features[other_rows].double()).median()))
    return Distances(np.array(within), np.array(across))


def _draw_rows(chosen: Tensor, seed: Seed) -> Int[Tensor, " rows"]:
    rows = chosen.nonzero().flatten()
    return rows[torch.randperm(len(rows), generator=seed.generator())[:MOST]]


def _by_seed(
    runs: Runs, scenario: IdentityScenario, is_permuted: bool
) -> Mapping[int, Distances]:
    return {
        seed: _of_seed(runs, scenario, seed, is_permuted)
        for seed in runs.plans[scenario.key].seeds
    }


def _of_seed(runs: Runs, scenario: IdentityScenario, seed: int, is_permuted: bool) -> Distances:
    dataset = load_data(runs.plans[scenario.key], runs.resources)
    assert dataset.users is not None
    distance_seed = Seed(seed).child("distances")
    with one_thread():
        rows, users = _sample(dataset.users, distance_seed)
        features = _features(runs, scenario, dataset, seed, rows)
    if is_permuted:
        users = users[
            torch.randperm(len(users), generator=distance_seed.child("dealt").generator())
        ]
    return distances(features, users, distance_seed.child("pairs"))


def _sample(users: Int[Tensor, " examples"], seed: Seed) -> tuple[Tensor, Tensor]:
    """Draw up to `MOST` rows of each user, so that features are computed for these only."""
    rows = torch.cat(
        [
            _draw_rows(users == user, seed.child("sample", user))
            for user in np.unique(users.numpy()).tolist()
        ]
    )
    return rows, users[rows]


def _features(
    runs: Runs, scenario: IdentityScenario, dataset: Dataset, seed: int, rows: Tensor
) -> Float[Tensor, "examples dims"]:
    """Compute the normalized inputs of the last layer."""
    build = partial(scenario.model.build, dataset.task)
    weights = [last_weights(runs, scenario.key, UNDEFENDED, seed)]
    inputs = dataset.train.inputs[rows]
    (layers,) = representations_of_models(build, weights, inputs[:1])
    before_last = list(layers)[-2]
    (representations,) = representations_of_models(build, weights, inputs, layer=before_last)
    return normalize(representations[before_last].clone())


def _distance_values(
    prefix: str, context: str, by_seed: Mapping[int, Distances]
) -> list[Figure]:
    seeds = np.concatenate([np.full(len(one.within), seed) for seed, one in by_seed.items()])
    within = np.concatenate([one.within for one in by_seed.values()])
    across = np.concatenate([one.across for one in by_seed.values()])
    above = (across > within).astype(float)
    return [
        figure(
            f"{prefix}{name}",
            f"{context}, {words}",
            estimate_mean(values, seeds, BOOTSTRAP),
            None,
            None,
        )
        for name, words, values in (
            ("within", "median distance within a user", within),
            ("across", "median distance to other users", across),
            ("above_diagonal", "share of users closer to themselves than to others", above),
        )
    ]
