"""Tracks a target's data through a run and raises an alarm at a stated false alarm rate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack, TrainingSource
from overheard.core.claims import Timeline
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.questions.shift.claim import GaussianEstimate, Shift
from overheard.questions.shift.estimators.alarm import calibrate_alarm
from overheard.questions.shift.estimators.mean_features import MeanFeatures
from overheard.questions.shift.estimators.representation_track import (
    RepresentationTrack,
    fit_representation_track,
)
from overheard.questions.shift.estimators.share_track import ShareTrack, fit_share_track
from overheard.simulation.auxiliary_logits import AuxiliaryLogits, mean_logits, mean_softmax
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import Probe
from overheard.simulation.simulation import Simulation, read_updates, run_simulation
from overheard.simulation.target_groups import TargetGroup, group_targets

LAST_LAYER_PROBE, LOGITS_PROBE, FEATURES_PROBE = (
    LastLayerChange(),
    AuxiliaryLogits(),
    MeanFeatures(),
)
PROBES: Mapping[str, tuple[Probe, ...]] = {
    "shares": (LAST_LAYER_PROBE, LOGITS_PROBE),
    "representations": (FEATURES_PROBE,),
}
"""The probes for each tracked quantity."""

DEFAULT_SPLITS = (Dirichlet(3.2), Dirichlet(10.0))
"""Assumed label splits of an industrial federation: similar labels in different shares. More
skewed splits would train the regressions on extremes that do not occur."""

IID_SPLITS = (Iid(fluctuation=0.0),)

MIN_ROUNDS = 3
"""Two rounds to compare and one more: with only two, any difference could be chance."""

MIN_VIRTUAL_CLIENTS = 8


@final
@dataclass(frozen=True, slots=True)
class ShiftTracking(Attack[Shift]):
    """Tracks what a target's updates reveal about its data and raises an alarm on a change.

    In each observed round, virtual clients with known label shares train from the broadcast as
    clients do. A regression on their models' outputs and the changes of their last layer then
    estimates the target's label shares (`estimators.share_track`). For a rival client, the
    target is the global model without the rival's own part, and virtual cohorts represent it
    (Brunner and Montuoro 2024). With `follows = "representations"`, the attack tracks how far
    the target moves the mean representations, compared with virtual clients that hold all
    labels in equal shares (`estimators.representation_track`). This detects a change of the
    inputs that leaves labels unchanged, and large label changes, but does not distinguish them.

    The statistic is a generalised likelihood ratio for a change since any earlier round
    (Siegmund and Venkatraman 1995). Its error model comes from virtual clients outside the
    regression's training half. The threshold is simulated: runs without a shift are composed of
    the errors of virtual clients. At each exchange another client's errors follow, including
    the sampling error of the exchanged examples. In a run without a shift, the probability of
    any alarm is `false_alarm_rate`. If a target's estimates vary more between rounds than those
    of virtual clients, its rounds have less weight. Statistics are comparable across rounds:
    their cube root is centred and scaled by the simulated runs.

    With or without an alarm, the claim gives the most likely round of the change. For shares it
    also gives each change and the shares after it, with covariances. As in Brunner and
    Montuoro, a rival without reported sizes assumes that the others are as large as itself.

    The false alarm rate holds if the auxiliary examples are like the target's and the prior
    covers it. It does not hold under an unknown defense, or if clients with different labels
    are sampled in each round, as the tracked value then depends on the sample. A rival that is
    not sampled in every round assumes the same sampling rate for the others. With fewer
    auxiliary examples than a client holds, virtual clients repeat examples; changes are then
    overestimated.

    Args:
        follows: the tracked quantity: label shares or representations.
        most_virtual: maximum number of virtual clients, or cohorts, per round, within the
            attacker's compute settings.
        false_alarm_rate: probability of any alarm over all observed rounds without a shift.

    """

    follows: Literal["shares", "representations"] = "shares"
    most_virtual: int = 48
    false_alarm_rate: float = 0.05

    name: ClassVar[str] = "shift_tracking"
    claim_type: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "Overheard; the extracted model from Brunner and Montuoro 2024 (arXiv 2409.13875), the "
        "sequential test from Siegmund and Venkatraman 1995 (Annals of Statistics 23)"
    )
    is_label_equivariant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        if self.most_virtual < MIN_VIRTUAL_CLIENTS:
            raise ValueError(
                f"most_virtual must be {MIN_VIRTUAL_CLIENTS} or more, got {self.most_virtual}"
            )
        if not 0 < self.false_alarm_rate < 1:
            raise ValueError(
                f"false_alarm_rate must lie between 0 and 1, got {self.false_alarm_rate}"
            )

    def training_source(self) -> TrainingSource:
        """Return whose updates it is trained on."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim for each target whether its data shifted, since when and in which direction.

        Raises:
            NeedsError: if a target has updates in fewer than `MIN_ROUNDS` rounds, there are
                too few virtual clients, or its updates are not finite.

        """
        if knowledge.compute.virtual_clients < MIN_VIRTUAL_CLIENTS:
            raise NeedsError(
                f"{self.name} needs {MIN_VIRTUAL_CLIENTS} virtual clients or more, got "
                f"{knowledge.compute.virtual_clients}"
            )
        known = self._with_defaults(view, knowledge)
        claims: dict[Party, Shift] = {}
        for group in group_targets(view, targets, len(view.messages)):
            if len(group.rounds) < MIN_ROUNDS:
                raise NeedsError(
                    f"{self.name} on {', '.join(group.targets)} needs {MIN_ROUNDS} or more "
                    f"rounds with updates, and has {len(group.rounds)}: record more rounds"
                )
            tracker = _GroupTracker(self, view, known, _with_cohort_size(view, group), seed)
            claims |= {target: tracker.claim(target) for target in group.targets}
        return claims

    def _with_defaults(self, view: View, knowledge: Knowledge) -> Knowledge:
        """Fill in this attacker's default assumptions."""
        # Exchanged examples have sampling error, so virtual clients must have it too.
        prior, means = replace(knowledge.prior, with_replacement=True), knowledge.compute
        if self.follows == "representations":
            prior = replace(prior, splits=IID_SPLITS)
        elif not prior.splits:
            prior = replace(prior, splits=DEFAULT_SPLITS)
        own_sizes = [
            update.examples
            for observer in view.observers
            for update in view.updates(observer).values()
            if update.examples and observer != COHORT
        ]
        others = [sender for sender in view.senders() if sender not in view.observers]
        if prior.sizes is None and own_sizes and not others:
            prior = replace(prior, sizes=(min(own_sizes), max(own_sizes)))
        virtual = min(means.virtual_clients, self.most_virtual)
        return replace(knowledge, prior=prior, compute=replace(means, virtual_clients=virtual))


def _with_cohort_size(view: View, group: TargetGroup) -> TargetGroup:
    """Set the group's size to the expected number of sampled clients per round.

    A client that reads broadcasts does not see who was sampled, but knows how often it was.
    """
    if group.cohort_size is None or SERVER in view.observers:
        return group
    rounds = set(group.rounds)
    sampled = [
        len(rounds.intersection(view.rounds_with_updates(observer)))
        for observer in view.observers
    ]
    share = sum(sampled) / (len(sampled) * len(rounds))
    return (
        replace(group, cohort_size=max(1, round(share * group.cohort_size))) if share else group
    )


@final
class _GroupTracker:
    """Tracks one group of targets with the virtual clients that represent them."""

    def __init__(
        self,
        attack: ShiftTracking,
        view: View,
        knowledge: Knowledge,
        group: TargetGroup,
        seed: Seed,
    ) -> None:
        self._attack, self._view, self._knowledge, self._group = attack, view, knowledge, group
        self._probes = PROBES[attack.follows]
        simulation = run_simulation(
            view, knowledge, group.rounds, self._probes, cohort_size=group.cohort_size
        )
        self._shares: ShareTrack | None = None
        self._representations: RepresentationTrack | None = None
        if attack.follows == "shares":
            self._shares = fit_share_track(
                _label_features(simulation.readings), simulation.shares, simulation.halves
            )
            errors = self._shares.virtual_shares - simulation.shares[:, None]
            errors = errors + _sampling_errors(simulation, seed.child("draws"))[:, None]
        else:
            self._representations = fit_representation_track(
                simulation.readings[FEATURES_PROBE]
            )
            errors = self._representations.virtual_distances
        self._alarm = calibrate_alarm(errors, attack.false_alarm_rate, seed.child("imagined"))

    def claim(self, target: Party) -> Shift:
        rounds = self._group.rounds
        readings = read_updates(self._view, target, self._knowledge, rounds, self._probes)
        if not all(bool(numbers.isfinite().all()) for numbers in readings.values()):
            raise NeedsError(
                f"{target} sent an update with NaN or infinite numbers: it cannot be tracked"
            )
        if self._shares is not None:
            by_probe = {probe: numbers[None] for probe, numbers in readings.items()}
            track = self._shares.read(_label_features(by_probe)[0])
        else:
            assert self._representations is not None
            track = self._representations.read(readings[FEATURES_PROBE])
        statistic, since = self._alarm.read(track)
        later, threshold = rounds[1:], self._alarm.threshold
        above = [
            number for number, value in zip(later, statistic, strict=True) if value > threshold
        ]
        evidence_by_round = Timeline(
            later,
            tuple(statistic),
            (threshold,) * len(later),
            self._attack.false_alarm_rate,
            above[0] if above else None,
            rounds[since],
        )
        if self._shares is None:
            return Shift(evidence_by_round)
        return Shift(evidence_by_round, *self._estimate_change(track, since))

    def _estimate_change(
        self, shares: Float[Tensor, "rounds classes"], since: int
    ) -> tuple[GaussianEstimate, GaussianEstimate]:
        """Estimate the change of shares at this round index, and the shares after it."""
        model, inflation = self._alarm.model, float(self._alarm.variance_inflation(shares))
        before, since_then = slice(None, since), slice(since, None)
        after = model.round_weights(since_then) @ shares[since:]
        change = after - model.round_weights(before) @ shares[:since]
        variance_before, variance_after = (
            persistent + inflation * independent
            for persistent, independent in map(model.mean_variances, (before, since_then))
        )
        return (
            GaussianEstimate(change, model.covariance * (variance_before + variance_after)),
            GaussianEstimate(after, model.covariance * variance_after),
        )


def _sampling_errors(simulation: Simulation, seed: Seed) -> Float[Tensor, "virtual classes"]:
    """Draw sampling errors of virtual clients' shares relative to their population.

    A shift is a change of the population. An exchange draws new examples and changes shares by
    chance: little for large clients, more than the estimation error for small ones.
    """
    sizes, shares = simulation.sizes.numpy(), simulation.shares.numpy()
    counts = seed.numpy().multinomial(sizes, shares / shares.sum(1, keepdims=True))
    return torch.from_numpy(counts / sizes[:, None] - shares)


def _label_features(
    readings: Mapping[Probe, Float[Tensor, "clients rounds ..."]],
) -> Float[Tensor, "clients rounds classes signs"]:
    """Return features of each label: its outputs on own and other examples, and weights."""
    change = readings[LAST_LAYER_PROBE]
    bias = change[..., -1]
    parts = [change[..., :-1].mean(-1), bias - bias.mean(-1, keepdim=True)]
    for outputs in (mean_softmax(readings[LOGITS_PROBE]), mean_logits(readings[LOGITS_PROBE])):
        centred = outputs - outputs.mean(-1, keepdim=True)
        own_label = centred.diagonal(dim1=-2, dim2=-1)
        parts += [own_label, centred.sum(-2) - own_label]
    return torch.stack(parts, -1)
