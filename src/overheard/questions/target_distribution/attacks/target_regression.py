"""The distribution of numbers to predict, by a regression on virtual clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int

from overheard.core.attack import Attack, TrainingSource
from overheard.core.claims import Interval
from overheard.core.examples import Examples, without_classes
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, Weights
from overheard.core.needs import BROADCASTS, MODEL, RECIPES, UPDATES, Need
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View, mean_update
from overheard.learning.fitting.halves_regression import (
    HalvesRegression,
    fit_halves_regression,
)
from overheard.learning.training_job import ClientTask
from overheard.questions.target_distribution.claim import LEVELS, TargetDistribution
from overheard.questions.target_distribution.estimators.calibrated_numbers import (
    calibrate_numbers,
)
from overheard.questions.target_distribution.estimators.tilted_clients import (
    draw_tilted_clients,
)
from overheard.questions.target_distribution.estimators.update_features import (
    are_finite,
    update_features,
)
from overheard.simulation.client_sizes import draw_size, size_range
from overheard.simulation.defended_training import DefendedTraining
from overheard.simulation.settled_device import settled_device
from overheard.simulation.simulated_defenses import SimulatedDefenses
from overheard.simulation.target_groups import TargetGroup, group_targets

FEWEST_EXAMPLES = 20
"""Fewest examples of the attacker, ten for each half of the virtual clients."""

LARGEST_SIZE = 2000
"""The most examples of a virtual client: more change its update little."""

PENALTIES = tuple(10.0**power for power in range(-3, 5))
"""Ridge penalties that are tried."""

LARGEST_FEATURE = 8.0
"""Standard deviations at which features are clipped."""

MOST_OF_COHORT = 30
"""The most virtual clients behind a virtual mean update."""

NUMBERS: Need = Need(
    "a task of numbers to predict or several labels",
    lambda view, target, knowledge: knowledge.kind in ("regression", "multi_label"),
)
EXAMPLES: Need = Need(
    f"{FEWEST_EXAMPLES} auxiliary examples or more",
    lambda view, target, knowledge: (
        knowledge.auxiliary is not None and len(knowledge.auxiliary) >= FEWEST_EXAMPLES
    ),
)


@final
@dataclass(frozen=True, slots=True)
class TargetRegression(Attack[TargetDistribution]):
    """Reads mean and quantiles of the numbers to predict from updates, by virtual clients.

    (1) Draw virtual clients from the attacker's examples, half of them from either half. Each
    holds examples of other numbers: see `estimators.tilted_clients`. (2) Train each from the
    broadcast of a round. (3) Fit ridge regressions of its mean and quantiles on features of its
    update: see `estimators.update_features`. (4) Apply them to the update of the target.
    Rounds are averaged. (5) Quantiles, and intervals by the errors on virtual clients whose
    examples the regression has not seen, are those of `estimators.calibrated_numbers`.

    Of the cohort, virtual mean updates are read in place of those of single clients. Where
    several labels may apply, the numbers are the shares of examples of each label, and there
    are no quantiles.

    Args:
        clients: virtual clients of a round.
        most_rounds: at most this many rounds are read: the first ones.

    """

    clients: Positive = 200
    most_rounds: Positive = 2

    name: ClassVar[str] = "target_regression"
    claim_type: ClassVar = TargetDistribution
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPES, NUMBERS, EXAMPLES})
    source: ClassVar[str] = (
        "of Overheard's own; virtual clients as in Ma et al. 2023 (Whispers of Data), "
        "intervals by split conformal prediction (Lei et al. 2018)"
    )
    quick_settings: ClassVar = {"clients": 24, "most_rounds": 1}
    accurate_settings: ClassVar = {"clients": 80, "most_rounds": 1}
    is_label_equivariant: ClassVar[bool] = False

    def training_source(self) -> TrainingSource:
        """Return which parties' updates it learns from."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, TargetDistribution]:
        """Claim mean and quantiles of every target, averaged over its first rounds."""
        claims = {}
        for group in group_targets(view, targets, self.most_rounds):
            fits = {
                number: self._fit_round(view, knowledge, group, number, seed)
                for number in group.rounds
            }
            for target in group.targets:
                claims[target] = self._claim(view, target, knowledge, fits)
        return claims

    def _fit_round(
        self, view: View, knowledge: Knowledge, group: TargetGroup, number: int, seed: Seed
    ) -> "_RoundFit":
        """Train virtual clients from the broadcast of a round, and fit the regression."""
        auxiliary, build_model = knowledge.auxiliary, knowledge.build_model
        assert auxiliary is not None
        assert build_model is not None
        own_seed = seed.child(self.name, number)
        low, high = size_range(view, knowledge.prior)
        sizes = (min(low, LARGEST_SIZE), min(high, LARGEST_SIZE))
        # Each round has the same virtual clients, so that its estimates can be averaged.
        fixed = seed.child(self.name)
        drawn = [draw_size(sizes, fixed.child("size", one)) for one in range(self.clients)]
        halves = np.arange(self.clients) % 2
        rows = self._draw_rows(auxiliary, drawn, halves, fixed)
        start = view.broadcasts()[number]
        deltas = _train(knowledge, auxiliary, rows, start, number, own_seed)
        examples = [auxiliary.take(one) for one in rows]
        if group.cohort_size is not None:
            deltas, examples = _cohorts(deltas, examples, halves, group.cohort_size, fixed)
        features = np.stack(list(update_features(build_model, start, deltas, auxiliary)))
        numbers = np.stack([_numbers(one, knowledge) for one in examples])
        regression = fit_halves_regression(
            features, numbers, halves, penalties=PENALTIES, largest=LARGEST_FEATURE
        )
        return _RoundFit(regression, numbers)

    def _draw_rows(
        self,
        auxiliary: Examples,
        sizes: Sequence[int],
        halves: Int[np.ndarray, " clients"],
        seed: Seed,
    ) -> list[torch.Tensor]:
        order = torch.randperm(len(auxiliary), generator=seed.child("halves").generator())
        middle = len(auxiliary) // 2
        drawn = [
            iter(
                draw_tilted_clients(
                    auxiliary,
                    part,
                    [one for one, own in zip(sizes, halves, strict=True) if own == half],
                    seed.child("rows", half),
                )
            )
            for half, part in enumerate((order[:middle], order[middle:]))
        ]
        return [next(drawn[half]) for half in halves.tolist()]

    def _claim(
        self,
        view: View,
        target: Party,
        knowledge: Knowledge,
        fits: Mapping[int, "_RoundFit"],
    ) -> TargetDistribution:
        auxiliary, build_model = knowledge.auxiliary, knowledge.build_model
        assert auxiliary is not None
        assert build_model is not None
        updates, broadcasts = view.updates(target), view.broadcasts()
        estimates, used = [], []
        for number, fit in fits.items():
            delta = updates[number].delta
            if not are_finite(delta):
                continue
            features = list(
                update_features(build_model, broadcasts[number], [delta], auxiliary)
            )
            estimate = fit.regression.estimates(np.stack(features)).mean(0)[0]
            if np.isfinite(estimate).all():
                estimates.append(estimate)
                used.append(fit)
        sample = auxiliary.loss_labels.double().numpy(force=True)
        if not estimates:
            # Nothing can be read of it: claim what the attacker's own examples say.
            numbers, deviations = _numbers(auxiliary, knowledge), sample.std(0)
            margins = np.repeat(3 * deviations, len(numbers) // len(deviations))
            return _as_claim(numbers, margins, auxiliary, knowledge)
        found = calibrate_numbers(
            np.mean(estimates, axis=0),
            np.mean([one.regression.unseen for one in used], axis=0),
            used[0].numbers,
            sample,
        )
        return _as_claim(found.numbers, found.margins, auxiliary, knowledge)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _RoundFit:
    """The regression of a round, and the numbers of its virtual clients.

    These are equal in all rounds.
    """

    regression: HalvesRegression
    numbers: Float[np.ndarray, "clients numbers"]


def _train(
    knowledge: Knowledge,
    auxiliary: Examples,
    rows: Sequence[torch.Tensor],
    start: Weights,
    number: int,
    seed: Seed,
) -> list[Weights]:
    """Return the updates of virtual clients, which follow the candidate recipes in turn."""
    assert knowledge.build_model is not None
    defenses = SimulatedDefenses(knowledge.defenses or (), number, seed.child("defenses"))
    recipes, found = knowledge.candidate_recipes(), dict[int, Weights]()
    examples = sum(map(len, rows)) / max(1, len(rows))
    device = settled_device(knowledge, auxiliary.inputs, len(rows), examples, are_jobs=False)
    for place, recipe in enumerate(recipes):
        mine = [one for one in range(len(rows)) if (one // 2) % len(recipes) == place]
        if not mine:
            continue
        training = DefendedTraining(
            knowledge.build_model,
            recipe,
            defenses,
            seed.child("training"),
            device,
        )
        tasks = [ClientTask(f"virtual/{one}", rows[one]) for one in mine]
        sent = training.updates(start, auxiliary, tasks, knowledge.background)
        found |= {one: update.delta for one, update in zip(mine, sent, strict=True)}
    return [found[one] for one in range(len(rows))]


def _cohorts(
    deltas: Sequence[Weights],
    examples: Sequence[Examples],
    halves: Int[np.ndarray, " clients"],
    size: int,
    seed: Seed,
) -> tuple[list[Weights], list[Examples]]:
    """Return virtual mean updates, each of clients of one half, and their examples."""
    draws = seed.child("cohorts").numpy()
    means, held = list[Weights](), list[Examples]()
    for half in halves:
        members = draws.choice(np.flatnonzero(halves == half), min(size, MOST_OF_COHORT))
        own = [examples[one] for one in members]
        updates = [Update(deltas[one], len(examples[one])) for one in members]
        means.append(mean_update(updates).delta)
        rows = torch.cat([one.loss_labels for one in own])
        held.append(without_classes(rows, rows))
    return means, held


def _numbers(examples: Examples, knowledge: Knowledge) -> Float[np.ndarray, " numbers"]:
    """Return for each number to predict its mean and, of a regression, its quantiles."""
    rows = examples.loss_labels.double().numpy(force=True)
    columns = [rows.mean(0)]
    if knowledge.kind == "regression":
        columns += list(np.quantile(rows, LEVELS, axis=0))
    return np.stack(columns, 1).flatten()


def _as_claim(
    numbers: Float[np.ndarray, " numbers"],
    margins: Float[np.ndarray, " numbers"],
    auxiliary: Examples,
    knowledge: Knowledge,
) -> TargetDistribution:
    spread = auxiliary.loss_labels.double()
    deviations = spread.std(0, correction=0).clamp(min=torch.finfo(torch.float32).eps)
    table = torch.from_numpy(numbers).reshape(len(deviations), -1)
    is_number = knowledge.kind == "regression"
    quantiles = table[:, 1:].sort(1).values if is_number else None
    if not is_number:
        table = table.clamp(0, 1)
    claim = TargetDistribution(
        torch.tensor(table[:, 0].tolist()),
        None if quantiles is None else torch.tensor(quantiles.tolist()),
        torch.tensor(deviations.tolist()),
    )
    middle = claim.numbers()
    bounds = Interval(
        tuple(one - margin for one, margin in zip(middle, margins.tolist(), strict=True)),
        tuple(one + margin for one, margin in zip(middle, margins.tolist(), strict=True)),
    )
    return TargetDistribution(claim.means, claim.quantiles, claim.deviations, bounds)
