"""Figure 2 and Figure 11: how users differ, in their data and in their updates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from overheard.auditing.inputs import load_data
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.drawing.figures import Panel as Drawing
from overheard.drawing.figures import ReportFigure
from overheard.findings.names import make_printable
from overheard.learning.threads import single_thread
from overheard.linkage.layers import layer_tensors
from overheard.plans.plan import UNDEFENDED
from overheard.questions.shift.estimators.model_comparisons import representations_of_models
from overheard.statistics.run_means import estimate_gain, estimate_mean
from overheard_studies.deanonymization.charts import (
    heat_map,
    scatter_chart,
)
from overheard_studies.deanonymization.measures import (
    ServerObservation,
    final_weights,
    observe_runs,
)
from overheard_studies.deanonymization.run_studies import (
    Scenarios,
    build_study,
    cheapest_plan,
    joint_plan,
)
from overheard_studies.deanonymization.setting import (
    BLOGS,
    OMNIGLOT,
    QUICK_SCENARIOS,
    WISDM,
    IdentityScenario,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import PanelRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value, tabulate_values

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


def distances(
    scenarios: Scenarios = (OMNIGLOT, BLOGS, WISDM), reduced: Scenarios = QUICK_SCENARIOS
) -> Study:
    """Return Figure 2: distances of features of the last global model, with L2 norm 1."""

    def read(scenario: IdentityScenario, one: PanelRun) -> Iterator[ReproducedValue]:
        for is_permuted, prefix, words in (
            (False, "", "original users"),
            (True, "dealt_anew_", "examples redistributed at random among users"),
        ):
            by_seed = {
                seed: _distances_of_run(one.runs, scenario, seed, is_permuted)
                for seed in one.plan.seeds
            }
            context = f"{one.context}; {words}"
            yield from _distance_values(f"{scenario.key}_{prefix}", context, by_seed)

    def draw(
        scenario: IdentityScenario, runs: StudyRuns, values: Values
    ) -> Iterator[ReportFigure]:
        seed = runs.plans[scenario.key].seeds[0]
        one, title = (
            _distances_of_run(runs, scenario, seed, False),
            f"Figure 2: {scenario.name}",
        )
        shown = _distance_values(f"{scenario.key}_", f"{scenario.name}; first run", {0: one})
        across = "median distance within the user", "median distance to other users"
        yield ReportFigure(
            title,
            "The examples of users above the line are closer to each other than to those of "
            "others.",
            None,
            (Drawing("", scatter_chart(one.within, one.across, *across, title)),),
            tabulate_values(title, list(shown)),
            True,
        )

    title = "Variations in user data: distances within a user and to other users"
    return build_study("figure2", title, scenarios, reduced, cheapest_plan, read, draw)


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
        within.append(float(torch.pdist(own_features).median()))
        across.append(float(torch.cdist(own_features, features[other_rows].double()).median()))
    return UserDistances(np.array(within), np.array(across))


def _draw_rows(chosen: Tensor, seed: Seed) -> Int[Tensor, " rows"]:
    rows = chosen.nonzero().flatten()
    return rows[torch.randperm(len(rows), generator=seed.generator())[:MAX_EXAMPLES]]


def _distances_of_run(
    runs: StudyRuns, scenario: IdentityScenario, seed: int, is_permuted: bool
) -> UserDistances:
    dataset = load_data(runs.plans[scenario.key], runs.resources)
    assert dataset.users is not None
    all_users, distance_seed = dataset.users, Seed(seed).child("distances")
    with single_thread():
        # Only the rows that are compared need features.
        sampled = [
            _draw_rows(all_users == user, distance_seed.child("sample", user))
            for user in np.unique(all_users.numpy()).tolist()
        ]
        rows = torch.cat(sampled)
        users = all_users[rows]
        features = _features(runs, scenario, dataset, seed, rows)
    if is_permuted:
        generator = distance_seed.child("dealt").generator()
        users = users[torch.randperm(len(users), generator=generator)]
    return measure_distances(features, users, distance_seed.child("pairs"))


def _features(
    runs: StudyRuns, scenario: IdentityScenario, dataset: Dataset, seed: int, rows: Tensor
) -> Float[Tensor, "examples dims"]:
    """Compute the normalized inputs of the last layer."""
    build = partial(runs.plans[scenario.key].training.model.build, dataset.task)
    weights = [final_weights(runs, scenario.key, UNDEFENDED, seed)]
    inputs = dataset.train.inputs[rows]
    (layers,) = representations_of_models(build, weights, inputs[:1])
    before_last = list(layers)[-2]
    (representations,) = representations_of_models(build, weights, inputs, layer=before_last)
    return normalize(representations[before_last].clone())


def _distance_values(
    prefix: str, context: str, by_seed: Mapping[int, UserDistances]
) -> Iterator[ReproducedValue]:
    seeds = np.concatenate([np.full(len(one.within), seed) for seed, one in by_seed.items()])
    within = np.concatenate([one.within for one in by_seed.values()])
    across = np.concatenate([one.across for one in by_seed.values()])
    above = (across > within).astype(float)
    for name, words, values in (
        ("within", "median distance within a user", within),
        ("across", "median distance to other users", across),
        ("above_diagonal", "share of users closer to themselves than to others", above),
    ):
        yield make_value(f"{prefix}{name}", f"{context}, {words}", estimate_mean(values, seeds))


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
            normalize(bias - bias.mean(1, keepdim=True)) for bias in (self.private, self.prior)
        )
        return (one @ other.T).numpy()


def bias(scenarios: Scenarios = (WISDM, BLOGS), reduced: Scenarios = QUICK_SCENARIOS) -> Study:
    """Return Figure 11: correlation of a private bias with the own prior bias and others'."""

    def read(scenario: IdentityScenario, one: PanelRun) -> Iterator[ReproducedValue]:
        observations = observe_runs(one.runs, scenario.key)
        by_seed = {seed: measure_biases(each) for seed, each in observations.items()}
        yield from _correlation_values(scenario.key, one.context, by_seed)

    def draw(
        scenario: IdentityScenario, runs: StudyRuns, values: Values
    ) -> Iterator[ReportFigure]:
        plan = runs.plans[scenario.key]
        names = load_data(plan, runs.resources).task.class_names
        if len(names) <= MAX_CLASSES:
            biases = measure_biases(observe_runs(runs, scenario.key)[plan.seeds[0]])
            yield _bias_figure(scenario, biases, names)

    title = "Per-class biases of users in prior and in private updates"
    plan = partial(joint_plan, "shadow", "random")
    return build_study("figure11", title, scenarios, reduced, plan, read, draw)


def measure_biases(observation: ServerObservation) -> UserBiases:
    """Return the biases of all users with updates from both devices."""
    devices = {
        user: device
        for device, user in KnownUsers.of(observation.knowledge).shadow_devices.items()
        if device in observation.view.senders()
    }
    clients = {observation.users[party]: party for party in observation.clients()}
    users = tuple(sorted(devices.keys() & clients.keys()))
    prior, private = (
        torch.stack([_mean_norms(observation, parties[user]) for user in users])
        for parties in (devices, clients)
    )
    return UserBiases(users, prior, private)


def _mean_norms(observation: ServerObservation, party: Party) -> Float[Tensor, " classes"]:
    norms = []
    for update in observation.view.updates(party).values():
        name = layer_tensors(-1, update.delta)[0]
        norms.append(update.delta[name].double().flatten(1).norm(dim=1))
    return torch.stack(norms).mean(0)


def _correlation_values(
    key: str, context: str, by_seed: Mapping[int, UserBiases]
) -> Iterator[ReproducedValue]:
    own, others, is_largest, seeds = [], [], [], []
    for seed, one in by_seed.items():
        correlations = one.correlations()
        diagonal = correlations.diagonal()
        own += diagonal.tolist()
        others += ((correlations.sum(1) - diagonal) / max(1, len(diagonal) - 1)).tolist()
        is_largest += [float(n == best) for n, best in enumerate(correlations.argmax(1))]
        seeds += [seed] * len(diagonal)
    of_private = "correlation of a user's private bias with"
    for name, words, values in (
        ("own_correlation", f"{of_private} the own prior bias", own),
        ("other_correlation", f"{of_private} another user's prior bias", others),
        (
            "own_is_largest",
            "share of users whose own prior bias has the largest correlation",
            is_largest,
        ),
    ):
        mean = estimate_mean(np.array(values), np.array(seeds))
        yield make_value(f"{key}_{name}", f"{context}; {words}", mean)
    lead = estimate_gain(np.array(own), np.array(others), np.array(seeds))
    words = "correlation with the own prior bias minus that with another user's"
    yield make_value(f"{key}_own_minus_other", f"{context}; {words}", lead)


def _bias_figure(
    scenario: IdentityScenario, biases: UserBiases, names: tuple[str, ...]
) -> ReportFigure:
    correlations = biases.correlations().diagonal()
    order = np.argsort(-correlations, kind="stable")
    indices = np.unique(np.linspace(0, len(order) - 1, min(SHOWN_USERS, len(order))).round())
    chosen = order[indices.astype(int)]
    users = [make_printable(biases.users[index]) for index in chosen]
    classes, title = [make_printable(name) for name in names], f"Figure 11: {scenario.name}"
    shown = _correlation_values(scenario.key, f"{scenario.name}; first run", {0: biases})
    rows = torch.from_numpy(chosen.copy())
    return ReportFigure(
        title,
        "Norms of each class's weight changes, mean over updates. Users are sorted by the "
        "correlation of their biases, highest first: "
        + ", ".join(f"{correlations[index]:.2f}" for index in chosen)
        + ".",
        None,
        tuple(
            Drawing(
                heading,
                heat_map(
                    norms[rows].numpy(),
                    users,
                    classes,
                    ("user", "class"),
                    f"{title}, {heading}",
                ),
            )
            for heading, norms in (
                ("prior updates", biases.prior),
                ("private updates", biases.private),
            )
        ),
        tabulate_values(title, list(shown)),
        True,
    )
