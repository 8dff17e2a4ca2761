"""Label shares from the layers below the last one, by clients with last layers of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack, TrainingSource
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.local_head import LocalHead
from overheard.core.messages import Weights, apply_update
from overheard.core.needs import AUXILIARY, BROADCASTS, RECIPES, UPDATES, Need
from overheard.core.parties import COHORT, Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.fitting.halves_regression import (
    HalvesRegression,
    fit_halves_regression,
)
from overheard.learning.initialization import initial_weights
from overheard.learning.simplex import normalize_rows_to_shares
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientTask, TrainingGroup
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.class_distances import (
    ClassDistances,
    measure_class_distances,
)
from overheard.questions.label_shares.estimators.local_intervals import CalibrationCases
from overheard.simulation.auxiliary_split import split_auxiliary
from overheard.simulation.chunk import DEFAULT_SPLITS
from overheard.simulation.client_sizes import size_range
from overheard.simulation.simulated_defenses import SimulatedDefenses
from overheard.simulation.target_groups import TargetGroup, group_targets
from overheard.simulation.virtual_client import VirtualClient, draw_counts

LARGEST_SIZE = 2000
"""The most examples of a virtual client: more change its update little."""

HELD_OUT = 50
"""The most examples of each class by which updates are read."""

PENALTIES = tuple(10.0**power for power in range(-2, 5))
"""Ridge penalties that are tried."""

LARGEST_FEATURE = 5.0
"""Standard deviations at which features are clipped."""

NETWORK: Need = Need(
    "the architecture of the model, which may leave its last layer with each client",
    lambda view, target, knowledge: _network(knowledge) is not None,
)
ONE_CLIENT: Need = Need(
    "updates of single clients, and not of the cohort",
    lambda view, target, knowledge: target != COHORT,
)


@final
@dataclass(frozen=True, slots=True)
class ClassGeometry(Attack[LabelShares]):
    """Reads how an update moves the classes apart, in the inputs of the last layer.

    It needs no last layer, so it can be asked where each client keeps its own (FedPer, FedRep).
    A client trains the other layers to tell apart the classes that it holds. So distances
    between the mean inputs of the last layer grow for these, on the attacker's examples. They
    are the same for any rotation of these inputs, as last layers of different clients ask for.
    Where further layers stay with each client, the attacker puts random ones in their place.

    (1) Draw virtual clients from the attacker's examples, half of them from either half. Each
    has a last layer of its own, which begins at random and is kept from round to round. (2)
    Train each from the broadcasts of the target's first rounds. (3) Fit a ridge regression of
    label shares on the changes of distances: see `estimators.class_distances`. (4) Apply it to
    the updates of the target. Intervals have the errors on virtual clients of the other half.

    Args:
        clients: virtual clients.
        most_rounds: at most this many rounds are read: the first ones.

    """

    clients: Positive = 200
    most_rounds: Positive = 4

    name: ClassVar[str] = "class_geometry"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, NETWORK, RECIPES, ONE_CLIENT})
    source: ClassVar[str] = (
        "of Overheard's own; virtual clients as in Ma et al. 2023 (Whispers of Data), layers "
        "at home as in Arivazhagan et al. 2019 (FedPer)"
    )
    quick_settings: ClassVar = {"clients": 24, "most_rounds": 1}
    accurate_settings: ClassVar = {"clients": 120, "most_rounds": 1}
    is_label_equivariant: ClassVar[bool] = False

    def training_source(self) -> TrainingSource:
        """Return which parties' updates it learns from."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim the label shares of every target.

        Raises:
            NeedsError: if a class has too few auxiliary examples.

        """
        claims = dict[Party, LabelShares]()
        own_seed = seed.child(self.name)
        for group in group_targets(view, targets, self.most_rounds):
            claims |= self._claims(view, group, knowledge, own_seed)
        return claims

    def _claims(
        self, view: View, group: TargetGroup, knowledge: Knowledge, seed: Seed
    ) -> dict[Party, LabelShares]:
        network, auxiliary = _network(knowledge), knowledge.auxiliary
        assert network is not None
        assert auxiliary is not None
        split = split_auxiliary(
            auxiliary.labels, knowledge.classes, seed.child("auxiliary"), HELD_OUT
        )
        clients = self._draw_clients(view, knowledge, seed)
        rows = [one.draw_rows(auxiliary.labels, split.quarters, seed) for one in clients]
        updates = _train(network, view, group, knowledge, clients, rows, seed)
        fixed = initial_weights(network.build_model, seed.child("fixed"))
        distances = ClassDistances(
            network.build_model,
            auxiliary.take(split.held_out),
            knowledge.classes,
            _part(fixed, network.names),
        )
        broadcasts = view.broadcasts()
        starts = [broadcasts[number] for number in group.rounds]
        features = measure_class_distances(distances, starts, updates)
        shares = torch.tensor([one.counts for one in clients]).double()
        shares /= shares.sum(1, keepdim=True)
        fit = fit_halves_regression(
            features.numpy(),
            shares.numpy(),
            np.array([one.half for one in clients]),
            penalties=PENALTIES,
            largest=LARGEST_FEATURE,
        )
        tested = normalize_rows_to_shares(torch.from_numpy(fit.unseen))
        cases = CalibrationCases(tested, shares)
        own = [
            [view.updates(target)[number].delta for target in group.targets]
            for number in group.rounds
        ]
        read = measure_class_distances(distances, starts, own)
        return {
            target: _claim(fit, cases, row)
            for target, row in zip(group.targets, read, strict=True)
        }

    def _draw_clients(
        self, view: View, knowledge: Knowledge, seed: Seed
    ) -> list[VirtualClient]:
        low, high = size_range(view, knowledge.prior)
        sizes = (min(low, LARGEST_SIZE), min(high, LARGEST_SIZE))
        splits = knowledge.prior.splits or DEFAULT_SPLITS
        recipes = len(knowledge.candidate_recipes())
        return [
            VirtualClient(
                number,
                number % 2,
                (number // 2) % recipes,
                draw_counts(number, splits, sizes, knowledge.classes, seed),
            )
            for number in range(self.clients)
        ]


def _network(knowledge: Knowledge) -> LocalHead | None:
    """Return the network, of which all tensors may be sent; None = it is not known."""
    if knowledge.build_model is not None:
        return LocalHead(knowledge.build_model, frozenset())
    return knowledge.facts.get(LocalHead)


def _train(
    network: LocalHead,
    view: View,
    group: TargetGroup,
    knowledge: Knowledge,
    clients: Sequence[VirtualClient],
    rows: Sequence[Tensor],
    seed: Seed,
) -> list[list[Weights]]:
    """Return what virtual clients send in each round; each keeps its own last layer."""
    broadcasts, recipes = view.broadcasts(), knowledge.candidate_recipes()
    own = [
        _part(initial_weights(network.build_model, one.client_seed(seed)), network.names)
        for one in clients
    ]
    sent = list[list[Weights]]()
    for number in group.rounds:
        starts = [{**broadcasts[number], **mine} for mine in own]
        defenses = SimulatedDefenses(knowledge.defenses or (), number, seed.child("defenses"))
        found = dict[int, Weights]()
        for place, recipe in enumerate(recipes):
            mine = [row for row, one in enumerate(clients) if one.recipe == place]
            trained = _updates(
                network,
                knowledge,
                recipe,
                defenses,
                [starts[one] for one in mine],
                [ClientTask(clients[one].name, rows[one]) for one in mine],
                seed.child("training"),
            )
            for row, (delta, update) in zip(mine, trained, strict=True):
                own[row] = apply_update(own[row], _part(delta, network.names))
                found[row] = update
        sent.append([found[row] for row in range(len(clients))])
    return sent


def _updates(
    network: LocalHead,
    knowledge: Knowledge,
    recipe: Recipe,
    defenses: SimulatedDefenses,
    starts: Sequence[Weights],
    tasks: Sequence[ClientTask],
    seed: Seed,
) -> Iterator[tuple[Weights, Weights]]:
    """Yield the change of all tensors of each client, and the update that it sends."""
    auxiliary = knowledge.auxiliary
    assert auxiliary is not None
    pool, defended = defenses.defended_tasks(auxiliary, tasks, knowledge.background)
    device = knowledge.compute.own_device
    pool = pool.to(device)
    trained = train_groups(
        network.build_model,
        [
            TrainingGroup(start, pool, (task,), seed)
            for start, task in zip(starts, defended, strict=True)
        ],
        recipe,
        round=defenses.round,
        workers=1,
        device=device,
    )
    for result in trained:
        shared = {name: one for name, one in result.delta.items() if name not in network.names}
        yield result.delta, defenses.defended_update(replace(result, delta=shared)).delta


def _part(weights: Weights, names: frozenset[str]) -> Weights:
    return {name: one for name, one in weights.items() if name in names}


def _claim(
    fit: HalvesRegression, cases: CalibrationCases, features: Float[Tensor, " features"]
) -> LabelShares:
    if not bool(features.isfinite().all()):
        return cases.prior_claim()
    estimates = torch.from_numpy(fit.estimates(features[None].numpy())[:, 0])
    both = normalize_rows_to_shares(estimates).mean(0, keepdim=True)
    shares = normalize_rows_to_shares(both)[0]
    null = cases.null_probability(shares)
    return LabelShares(shares.float(), null > 0.5, cases.bounds(shares), null.float())
