"""Figure 11: the bias of a user per class, in prior and in private updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from overheard.auditing.inputs import load_data
from overheard.core.parties import Party
from overheard.drawing.figures import Panel, ReportFigure
from overheard.findings.names import make_printable
from overheard.linkage.layers import layer_tensors
from overheard.plans.plan import Plan
from overheard.statistics.run_means import estimate_mean
from overheard_studies.deanonymization.charts import heat_map
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import build_published_attack
from overheard_studies.deanonymization.observations import ServerObservation, observe_runs
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_sender,
)
from overheard_studies.deanonymization.scenarios import (
    BLOGS,
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

SHOWN_USERS = 8
"""Number of users that are shown, as published."""

MAX_CLASSES = 20
"""Heat maps have no room for more classes."""


@final
@dataclass(frozen=True, slots=True)
class UserBiases:
    """Mean norms of the last layer's weight changes per class, over a user's updates.

    Args:
        users: users with updates from both devices.
        prior: mean norms of the updates of shadow devices.
        private: mean norms of the updates of the users' own devices.

    """

    users: tuple[str, ...]
    prior: Float[Tensor, "users classes"]
    private: Float[Tensor, "users classes"]

    def correlations(self) -> Float[np.ndarray, "users users"]:
        """Return the correlation over classes of each private bias with each prior bias."""
        one, other = (
            torch.nn.functional.normalize(bias - bias.mean(1, keepdim=True))
            for bias in (self.private, self.prior)
        )
        return (one @ other.T).numpy()


@final
@dataclass(frozen=True, slots=True)
class BiasExperiment(Experiment, IllustratedExperiment):
    """Correlation of a user's private bias with the own prior bias and with those of others.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        name: name of the figure.

    """

    scenarios: tuple[IdentityScenario, ...] = (WISDM, BLOGS)
    reduced: tuple[IdentityScenario, ...] = (QUICK_SCENARIO,)
    name: str = "figure11"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Per-class biases of users in prior and in private updates"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The paper shows eight of its users and "
            "describes in words "
            "where the two biases agree. Here their correlation over classes is reported, for "
            "a user's own two biases and for those of two users. Norms are averaged over all "
            f"updates of a device. The figure shows {SHOWN_USERS} users of the first run, "
            "evenly spaced from the highest to the lowest correlation, if there are at most "
            f"{MAX_CLASSES} classes. The prior is random."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        return {
            scenario.key: build_plan(
                scenario,
                build_known_user_settings("random"),
                (threat_per_sender((build_published_attack(scenario, "shadow"),)),),
            )
            for scenario in (self.reduced if quick else self.scenarios)
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return correlations, and how often the own prior bias has the largest one."""
        full = self.plans(quick=False)
        values = []
        for scenario in self.scenarios:
            if scenario.key in runs.audits:
                context = describe_setting(
                    scenario, runs.plans[scenario.key], full.get(scenario.key)
                )
                observations = observe_runs(runs, scenario.key)
                values += _correlation_values(
                    scenario.key,
                    context,
                    {
                        seed: measure_biases(observation)
                        for seed, observation in observations.items()
                    },
                )
        return tuple(values)

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw heat maps of some users' prior and private biases."""
        page_figures = []
        for scenario in self.scenarios:
            if scenario.key not in runs.audits:
                continue
            names = load_data(runs.plans[scenario.key], runs.resources).task.class_names
            if len(names) <= MAX_CLASSES:
                seed = runs.plans[scenario.key].seeds[0]
                biases_of_run = measure_biases(observe_runs(runs, scenario.key)[seed])
                page_figures.append(_bias_figure(scenario, biases_of_run, names))
        return PageContent(tuple(page_figures))


def measure_biases(observation: ServerObservation) -> UserBiases:
    """Return the biases of all users with updates from both devices."""
    devices = {
        user: device
        for device, user in observation.knowledge.known_users.shadow_devices.items()
        if device in observation.view.senders()
    }
    clients = {observation.users[party]: party for party in observation.clients()}
    users = tuple(sorted(devices.keys() & clients.keys()))
    return UserBiases(
        users,
        torch.stack([_mean_norms(observation, devices[user]) for user in users]),
        torch.stack([_mean_norms(observation, clients[user]) for user in users]),
    )


def _mean_norms(observation: ServerObservation, party: Party) -> Float[Tensor, " classes"]:
    norms = []
    for update in observation.view.updates(party).values():
        name = layer_tensors(-1, update.delta)[0]
        norms.append(update.delta[name].double().flatten(1).norm(dim=1))
    return torch.stack(norms).mean(0)


def _correlation_values(
    key: str, context: str, by_seed: Mapping[int, UserBiases]
) -> list[ReproducedValue]:
    own_correlations, other_correlations, is_largest, seeds = [], [], [], []
    for seed, one in by_seed.items():
        correlations = one.correlations()
        diagonal = correlations.diagonal()
        own_correlations += diagonal.tolist()
        other_correlations += (
            (correlations.sum(1) - diagonal) / max(1, len(diagonal) - 1)
        ).tolist()
        is_largest += (
            (correlations.argmax(1) == np.arange(len(correlations))).astype(float).tolist()
        )
        seeds += [seed] * len(diagonal)
    return [
        reproduced_value(
            f"{key}_{name}",
            f"{context}; {words}",
            estimate_mean(np.array(values), np.array(seeds)),
            None,
            None,
        )
        for name, words, values in (
            (
                "own_correlation",
                "correlation of a user's private bias with the own prior bias",
                own_correlations,
            ),
            (
                "other_correlation",
                "correlation of a user's private bias with another user's prior bias",
                other_correlations,
            ),
            (
                "own_is_largest",
                "share of users whose own prior bias has the largest correlation",
                is_largest,
            ),
        )
    ]


def _bias_figure(
    scenario: IdentityScenario, user_biases: UserBiases, names: tuple[str, ...]
) -> ReportFigure:
    correlations = user_biases.correlations().diagonal()
    order = np.argsort(-correlations, kind="stable")
    indices = np.unique(np.linspace(0, len(order) - 1, min(SHOWN_USERS, len(order))).round())
    chosen = order[indices.astype(int)]
    users = [user_biases.users[index] for index in chosen]
    title = f"Figure 11: {scenario.name}"
    return ReportFigure(
        title,
        "Norms of each class's weight changes, mean over updates. Users are sorted by the "
        "correlation of their biases, highest first: "
        + ", ".join(f"{correlations[index]:.2f}" for index in chosen)
        + ".",
        None,
        tuple(
            Panel(
                heading,
                heat_map(
                    bias[torch.from_numpy(chosen.copy())].numpy(),
                    [make_printable(user) for user in users],
                    [make_printable(name) for name in names],
                    ("user", "class"),
                    f"{title}, {heading}",
                ),
            )
            for heading, bias in (
                ("prior updates", user_biases.prior),
                ("private updates", user_biases.private),
            )
        ),
        tabulate_values(
            title,
            _correlation_values(scenario.key, f"{scenario.name}; first run", {0: user_biases}),
        ),
        True,
    )
