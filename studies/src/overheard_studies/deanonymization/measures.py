"""What the server of an audit observed, and the utility of the global model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from overheard.archive.truth import read_truth
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import load_inputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.parties import SERVER, Party, is_shadow_device
from overheard.core.seeds import Seed
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.view import View
from overheard.data.dataset import Dataset
from overheard.learning.evaluate import logits_of_models
from overheard.learning.loss import expected_rating
from overheard.learning.threads import single_thread
from overheard.linkage.known_updates import (
    KnownUpdates,
    SenderUpdates,
    UpdateSource,
    load_known_updates,
    read_sender_updates,
)
from overheard.linkage.multi_head_mlp import fit_multi_head_mlp
from overheard.plans.plan import UNDEFENDED
from overheard.plans.registries import true_fact_kinds
from overheard.questions.identity.estimators.user_classes import build_user_classes
from overheard.questions.identity.statistics.ranking import Ranking
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.deanonymization.setting import IdentityScenario, UtilityMeasure
from overheard_studies.estimates import BOOTSTRAP_SEED
from overheard_studies.runs import StudyRuns


@final
@dataclass(frozen=True, slots=True)
class ServerObservation:
    """The view and the prior knowledge of the server in one run of an audit.

    Args:
        view: messages that the server can read.
        knowledge: prior knowledge of the server.
        users: user of each client.

    """

    view: View
    knowledge: Knowledge
    users: Mapping[Party, str]

    def clients(self) -> tuple[Party, ...]:
        """Return the clients with messages in the view."""
        return tuple(party for party in self.view.senders() if not is_shadow_device(party))


@final
@dataclass(frozen=True, slots=True)
class RunUpdates:
    """The updates of one run that identification learns from and those it identifies.

    Args:
        known: updates of known users.
        sent: updates sent by clients.
        users: user of each client.
        seed: seed of the run.
        steps: training steps of the published network.

    """

    known: KnownUpdates
    sent: SenderUpdates
    users: Mapping[Party, str]
    seed: int
    steps: int

    def train_identifier(self, rows: Bool[Tensor, " known"]) -> "TrainedIdentifier | None":
        """Train the published network on the selected known updates.

        Returns None if they belong to fewer than two users.
        """
        known = KnownUpdates(
            self.known.vectors[rows],
            self.known.users[rows],
            self.known.rounds[rows],
            self.known.chunks[rows],
            self.known.names,
            self.known.candidate_count,
        )
        if len(set(known.users.tolist())) < 2:
            return None
        classes = build_user_classes(known, "reidentify_mlp")
        heads = fit_multi_head_mlp(
            normalize(known.vectors),
            [classes.labels],
            [classes.count],
            Seed(self.seed).child("papers"),
            steps=self.steps,
        )
        return TrainedIdentifier(
            self,
            tuple(classes.users[index] for index in classes.class_users.tolist()),
            heads.log_probabilities(normalize(self.sent.vectors))[0][
                :, : len(classes.class_users)
            ],
        )


@final
@dataclass(frozen=True, slots=True)
class TrainedIdentifier:
    """The scores of a trained network for every update that clients sent.

    Args:
        updates: updates of the run.
        known_users: users that the network can identify.
        scores: score of each sent update for each of these users.

    """

    updates: RunUpdates
    known_users: tuple[str, ...]
    scores: Float[Tensor, "sent names"]

    def precision_by_user(self, selected: Bool[Tensor, " sent"]) -> Mapping[str, float]:
        """Return the average precision by user over the selected sent updates.

        Only users that the network can identify and that sent one of the updates are included.
        """
        true_users = [
            self.updates.users[self.updates.sent.senders[row]]
            for row in selected.nonzero().flatten().tolist()
        ]
        common = sorted(set(true_users) & set(self.known_users))
        users = (*common, *sorted(set(true_users) - set(self.known_users)))
        if not common:
            return {}
        position = {user: number for number, user in enumerate(users)}
        ranking = Ranking(
            self.updates.seed,
            self.known_users,
            users,
            np.array([self.known_users.index(user) for user in common]),
            self.scores[selected].double().numpy(),
            np.array([position[user] for user in true_users]),
            None,
        )
        return dict(zip(common, ranking.precision_matrix().diagonal().tolist(), strict=True))


def observe_runs(runs: StudyRuns, name: str) -> Mapping[int, ServerObservation]:
    """Observe each undefended run as the server of the audit's first threat, by seed."""
    plan, audit_folder = runs.plans[name], AuditFolder(runs.folder / name)
    inputs = load_inputs(
        plan,
        runs.resources,
        audit_folder.tensor_cache(runs.resources.simulation_cache),
    )
    (undefended,) = [arm for arm in plan.arms if not arm.defenses]
    return {
        seed: ServerObservation(
            runs.transcript(name, UNDEFENDED, seed).seen_by(*plan.threats[0].observer_parties),
            attacker_knowledge(undefended, plan.threats[0], inputs.for_attackers(seed)),
            read_truth(audit_folder.run_path(UNDEFENDED, seed), true_fact_kinds())
            .facts.need(UsersOfClients)
            .users,
        )
        for seed in plan.seeds
    }


def iterate_run_updates(
    runs: StudyRuns, scenario: IdentityScenario, source: UpdateSource
) -> Iterator[RunUpdates]:
    """Iterate over the updates of each run, in the layer that the attacks read."""
    with single_thread():
        for seed, observation in observe_runs(runs, scenario.key).items():
            yield RunUpdates(
                load_known_updates(
                    observation.view,
                    observation.knowledge,
                    source,
                    scenario.layer,
                    max_rounds=scenario.most_rounds,
                ),
                read_sender_updates(observation.view, observation.clients(), scenario.layer),
                observation.users,
                seed,
                scenario.steps,
            )


def mean_over_users(by_seed: Mapping[int, Mapping[str, float]]) -> Estimate | None:
    """Return the mean over the users of all runs; None if there are no users.

    The interval is that of `estimate_mean`.
    """
    values = [value for by_user in by_seed.values() for value in by_user.values()]
    seeds = [seed for seed, by_user in by_seed.items() for _ in by_user]
    return estimate_mean(np.array(values), np.array(seeds)) if values else None


def mark_all(count: int) -> Bool[Tensor, " updates"]:
    """Return a mask that selects all updates."""
    return torch.ones(count, dtype=torch.bool)


TOP_LABELS = 5
"""Number of most probable labels that count under the measure "top5"."""


def measure_utility(
    utility: UtilityMeasure, build: BuildModel, weights: Weights, test: Examples
) -> float:
    """Measure the utility of a model.

    Higher is better, except for an absolute error.
    """
    match utility:
        case "top5":
            return top_k_accuracy(build, weights, test, TOP_LABELS)
        case "absolute_error":
            return mean_absolute_error(build, weights, test)
        case "accuracy":
            return top_k_accuracy(build, weights, test, 1)


def top_k_accuracy(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    k: int,
    device: torch.device | str = "cpu",
) -> float:
    """Return the share of examples whose label is among the k top-ranked ones (0..1).

    A label tied at rank k counts with its probability of being included under random tie
    breaking. A constant model gets k / classes; NaN logits get 0.
    """
    (logits,) = logits_of_models(build_model, [weights], examples.inputs, device=device)
    classes = logits.shape[1]
    if not 1 <= k <= classes:
        raise ValueError(f"k must be 1 to {classes}, the number of classes, got {k}")
    label_logits = logits.gather(1, examples.labels.cpu().unsqueeze(1))  # (examples, 1)
    tied = (logits == label_logits).sum(1)  # including the label
    above = classes - tied - (logits < label_logits).sum(1)
    free_ranks = (k - above).clamp(min=0)
    return float((free_ranks / tied.clamp(min=1)).clamp(max=1).double().mean())


def mean_absolute_error(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    device: torch.device | str = "cpu",
) -> float:
    """Return the mean absolute difference between expected rating and label, in labels.

    Ratings are 0 .. classes - 1, as in the squared error that `Recipe.loss` can name.
    """
    (logits,) = logits_of_models(build_model, [weights], examples.inputs, device=device)
    return float((expected_rating(logits.double()) - examples.labels.cpu()).abs().mean())


def chance_utility(
    utility: UtilityMeasure, labels: Int[Tensor, " examples"], classes: int
) -> float:
    """Return the expected utility of a label drawn uniformly at random."""
    match utility:
        case "top5":
            return TOP_LABELS / classes
        case "accuracy":
            return 1 / classes
        case "absolute_error":
            distances = (labels[:, None] - torch.arange(classes)).abs()
            return float(distances.double().mean())


def select_test_examples(scenario: IdentityScenario, dataset: Dataset) -> Examples:
    """Select as many test examples as the scenario uses, by a fixed shuffle."""
    order = torch.randperm(
        len(dataset.test), generator=BOOTSTRAP_SEED.child("test", scenario.key).generator()
    )
    return dataset.test.take(order[: scenario.test])


def measure_arm_utilities(
    runs: StudyRuns, name: str, arm: str, scenario: IdentityScenario, dataset: Dataset
) -> tuple[float, ...]:
    """Measure the utility of an arm's last global model, one value per seed.

    `name` is the sub-folder of the audit.
    """
    test = select_test_examples(scenario, dataset)
    build = partial(runs.plans[name].training.model.build, dataset.task)
    return tuple(
        measure_utility(scenario.utility, build, final_weights(runs, name, arm, seed), test)
        for seed in runs.plans[name].seeds
    )


def final_weights(runs: StudyRuns, name: str, arm: str, seed: int) -> Weights:
    """Return the global model after the last round."""
    broadcasts = runs.transcript(name, arm, seed).seen_by(SERVER).broadcasts()
    return broadcasts[max(broadcasts)]


def mean_over_seeds(values: Sequence[float]) -> Estimate:
    """Return the mean of the values, one per seed, with its interval.

    They are means themselves or ratios, so values of 0 or 1 are no trials.
    """
    return estimate_mean(np.array(values), np.arange(len(values)), may_be_trials=False)
