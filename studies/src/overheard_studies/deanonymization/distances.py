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
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
from overheard.statistics.run_means import estimate_mean
from overheard_studies.deanonymization.charts import scatter_chart
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.model_utility import final_weights
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
from overheard_studies.deanonymization.scenarios import (
    BLOGS,
    OMNIGLOT,
    QUICK_SCENARIO,
    WISDM,
    IdentityScenario,
)
from overheard_studies.estimates import reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.values_table import tabulate_values

MAX_EXAMPLES = 100
"""Largest number of examples of a user, and of others, in the distances."""


@final
@dataclass(frozen=True, slots=True)
class UserDistances:
    """Median distances of each user's examples.

    Args:
        within: to examples of the same user.
        across: to examples of other users.

    """

    within: Float[np.ndarray, " users"]
    across: Float[np.ndarray, " users"]


@final
@dataclass(frozen=True, slots=True)
class DistancesExperiment(Experiment, IllustratedExperiment):
    """Distances of features of the last global model, with L2 norm 1.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        name: name of the figure.

    """

    scenarios: tuple[IdentityScenario, ...] = (OMNIGLOT, BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (QUICK_SCENARIO,)
    name: str = "figure2"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Variations in user data: distances within a user and to other users"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The figure's values are lost. The paper's "
            "features are the "
            "1,024 means of a MobileNet trained on ImageNet, for photos. Here they are the "
            "inputs of the last layer of the federation's last global model, scaled to length "
            f"1, for at most {MAX_EXAMPLES} training examples of each user and as many of "
            "others. A control redistributes the same examples at random among all users."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set, with the cheapest attack."""
        return {
            scenario.key: build_plan(
                scenario,
                build_known_user_settings("random"),
                (threat_per_update((ReidentifyKnn(updates="shadow", layer=scenario.layer),)),),
            )
            for scenario in (self.reduced if quick else self.scenarios)
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return means over users, and the share of users above the diagonal."""
        full = self.plans(quick=False)
        values: list[ReproducedValue] = []
        for scenario in self.scenarios:
            if scenario.key not in runs.audits:
                continue
            context = describe_setting(
                scenario, runs.plans[scenario.key], full.get(scenario.key)
            )
            for is_permuted, prefix, words in (
                (False, "", "original users"),
                (True, "dealt_anew_", "examples redistributed at random among users"),
            ):
                by_seed = _by_seed(runs, scenario, is_permuted)
                values += _distance_values(
                    f"{scenario.key}_{prefix}", f"{context}; {words}", by_seed
                )
        return tuple(values)

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw one dot per user of the first run."""
        page_figures = []
        for scenario in self.scenarios:
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
                        tabulate_values(title, values),
                        True,
                    )
                )
        return PageContent(tuple(page_figures))


def measure_distances(
    features: Float[Tensor, "examples dims"], users: Int[Tensor, " examples"], seed: Seed
) -> UserDistances:
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
    return UserDistances(np.array(within), np.array(across))


def _draw_rows(chosen: Tensor, seed: Seed) -> Int[Tensor, " rows"]:
    rows = chosen.nonzero().flatten()
    return rows[torch.randperm(len(rows), generator=seed.generator())[:MAX_EXAMPLES]]


def _by_seed(
    runs: ExperimentRuns, scenario: IdentityScenario, is_permuted: bool
) -> Mapping[int, UserDistances]:
    return {
        seed: _of_seed(runs, scenario, seed, is_permuted)
        for seed in runs.plans[scenario.key].seeds
    }


def _of_seed(
    runs: ExperimentRuns, scenario: IdentityScenario, seed: int, is_permuted: bool
) -> UserDistances:
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
    return measure_distances(features, users, distance_seed.child("pairs"))


def _sample(users: Int[Tensor, " examples"], seed: Seed) -> tuple[Tensor, Tensor]:
    """Draw up to `MAX_EXAMPLES` rows of each user, the only ones that need features."""
    rows = torch.cat(
        [
            _draw_rows(users == user, seed.child("sample", user))
            for user in np.unique(users.numpy()).tolist()
        ]
    )
    return rows, users[rows]


def _features(
    runs: ExperimentRuns, scenario: IdentityScenario, dataset: Dataset, seed: int, rows: Tensor
) -> Float[Tensor, "examples dims"]:
    """Compute the normalized inputs of the last layer."""
    build = partial(scenario.model.build, dataset.task)
    weights = [final_weights(runs, scenario.key, UNDEFENDED, seed)]
    inputs = dataset.train.inputs[rows]
    (layers,) = representations_of_models(build, weights, inputs[:1])
    before_last = list(layers)[-2]
    (representations,) = representations_of_models(build, weights, inputs, layer=before_last)
    return normalize(representations[before_last].clone())


def _distance_values(
    prefix: str, context: str, by_seed: Mapping[int, UserDistances]
) -> list[ReproducedValue]:
    seeds = np.concatenate([np.full(len(one.within), seed) for seed, one in by_seed.items()])
    within = np.concatenate([one.within for one in by_seed.values()])
    across = np.concatenate([one.across for one in by_seed.values()])
    above = (across > within).astype(float)
    return [
        reproduced_value(
            f"{prefix}{name}",
            f"{context}, {words}",
            estimate_mean(values, seeds),
            None,
            None,
        )
        for name, words, values in (
            ("within", "median distance within a user", within),
            ("across", "median distance to other users", across),
            ("above_diagonal", "share of users closer to themselves than to others", above),
        )
    ]
