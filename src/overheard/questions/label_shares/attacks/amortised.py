"""Label shares with intervals, from networks trained on virtual clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import log
from statistics import fmean
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.attack import Attack, TrainingSource
from overheard.core.compute_settings import TensorCache
from overheard.core.knowledge import Knowledge
from overheard.core.needs import (
    AUXILIARY,
    BROADCASTS,
    MODEL,
    RECIPES,
    UPDATES,
    VIRTUAL_CLIENTS,
)
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings
from overheard.questions.label_shares.estimators.cross_fit import (
    HALVES,
    NETWORKS,
    CrossFit,
    fit_with_cross_fitting,
)
from overheard.questions.label_shares.estimators.deep_set_regressor import (
    COPIES,
    DEEP_SET_WIDTH,
    DROPOUT,
)
from overheard.questions.label_shares.estimators.doubt import (
    OTHER_SIZE,
    find_doubt,
    is_size_doubted,
)
from overheard.questions.label_shares.estimators.learning_curve import simulate_until_flat
from overheard.questions.label_shares.estimators.local_intervals import CalibrationCases
from overheard.questions.label_shares.estimators.local_stacking import (
    LocalStacking,
    fit_local_stacking,
    imbalance,
)
from overheard.questions.label_shares.estimators.mlp_regressor import (
    MLP_WIDTH,
    MOST_COMPONENTS,
)
from overheard.questions.label_shares.estimators.size_regression import (
    SizeRegression,
    fit_size_regression,
)
from overheard.simulation.auxiliary_logits import AuxiliaryLogits, mean_softmax
from overheard.simulation.auxiliary_split import HELD_OUT_SHARE
from overheard.simulation.cache_keys import text_key
from overheard.simulation.chunk import MAX_COHORT_SIZE
from overheard.simulation.class_gradient_fit import ClassGradientFit
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import Probe
from overheard.simulation.simulation import Simulation, read_broadcasts, read_updates
from overheard.simulation.target_groups import TargetGroup, group_targets
from overheard.simulation.unexplained_update import UnexplainedUpdate
from overheard.simulation.update_norms import InputNorms, UpdateNorms

LAST_LAYER_CHANGE, OUTPUTS, CLASS_GRADIENTS, UPDATE_NORMS, UNEXPLAINED, INPUT_NORMS = (
    LastLayerChange(),
    AuxiliaryLogits(),
    ClassGradientFit(),
    UpdateNorms(),
    UnexplainedUpdate(),
    InputNorms(),
)
PROBES: tuple[Probe, ...] = (
    LAST_LAYER_CHANGE,
    OUTPUTS,
    CLASS_GRADIENTS,
    UPDATE_NORMS,
    UNEXPLAINED,
    INPUT_NORMS,
)


@final
@dataclass(frozen=True, slots=True)
class Amortised(Attack[LabelShares]):
    """Networks trained on virtual clients estimate label shares and their uncertainty.

    The attacker simulates virtual clients with known label shares. This works for any
    optimizer, any number of local steps and any known defense. Regression from features of
    their updates to their shares gives an estimator, whose cost is paid once for all targets
    (amortised inference; Cranmer, Brehmer, Louppe 2020). The features of a round are
    the change of the last layer, and the mean logits and softmax outputs on held-out examples
    of each class, before and after. Further features are the factors with which the classes'
    mean gradients explain the change (`simulation.class_gradient_fit`). For one step of SGD
    these factors are exact (Ramakrishna and Dan 2022); the networks learn to correct them for
    many steps.

    The equation of the output bias is solved too, with a learned scale
    (`estimators.cross_fit`). Two kinds of network estimate the shares of a round: one
    treats the classes one by one with shared weights, one takes all features at once. Three
    networks of each kind are trained: one on quarters of each half of the auxiliary examples,
    tested on the virtual clients of the other half, and one on all, which estimates real
    clients. So tests are as hard as the estimate of a client with examples of its own
    (`estimators.cross_fit`). Tests of clients of similar imbalance weight the estimates of all
    kinds and rounds (`estimators.local_stacking`). Among them are the mean output of the
    client's model and, for SGD with known sizes, the equation with its exact scale. Residuals
    of the tests give an interval for each share and the probability that a class is absent
    (`estimators.local_intervals`). If the target's size is hidden, a regression on the lengths
    of its updates estimates it, with an interval.

    If a target's features are not finite, the claim is that of an average virtual client.
    Intervals are valid for clients like the virtual ones. They are too narrow if the auxiliary
    data differ in kind from the clients', if a defense is unknown, if the prior excludes the
    client, or if the client reports another number of examples than it has. Comparisons of
    real with virtual updates notice all but the third; the claim then says that its intervals
    are not trusted (`estimators.doubt`). If the reported number is in doubt, the one that the
    updates speak for takes its place.

    Args:
        most_rounds: at most this many observed rounds are used: the first, the last, and evenly
            spaced ones between. Later rounds add less, as the model already fits the data.
        steps: training steps of each network.

    """

    most_rounds: Positive = 5
    steps: Positive = 400

    name: ClassVar[str] = "amortised"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset(
        {UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES, VIRTUAL_CLIENTS}
    )
    source: ClassVar[str] = (
        "Overheard; virtual clients from Ma et al. 2025 (arXiv 2504.21436), the equation of "
        "the last layer from Ramakrishna and Dan 2022 (AISec)"
    )
    quick_settings: ClassVar = {"steps": 20}
    accurate_settings: ClassVar = {"steps": 100}
    is_label_equivariant: ClassVar[bool] = False

    def training_source(self) -> TrainingSource:
        """Return which parties' updates it learns from."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, with intervals, null probabilities and size.

        Raises:
            NeedsError: if there are too few auxiliary examples.

        """
        claims: dict[Party, LabelShares] = {}
        groups = [
            self._select_rounds(group)
            for group in group_targets(view, targets, len(view.messages))
        ]
        fits: dict[tuple[int, int | None, int], CrossFit] = {}
        for group in groups:
            estimator = _GroupEstimator(view, knowledge, group, self.steps, seed)
            keys = [(number, group.cohort_size, estimator.clients) for number in group.rounds]
            for key in keys:
                if key not in fits:
                    fits[key] = estimator.fit(key[0])
            claims |= estimator.claim_shares([fits[key] for key in keys])
        return claims

    def _select_rounds(self, group: TargetGroup) -> TargetGroup:
        most = min(self.most_rounds, len(group.rounds))
        last = len(group.rounds) - 1
        positions = {round(index * last / max(1, most - 1)) for index in range(most)}
        rounds = tuple(group.rounds[position] for position in sorted(positions))
        return replace(group, rounds=rounds)


def _knows_all_sizes(view: View) -> bool:
    """Return whether every update reports its size; partial reports are not used."""
    updates = [update for sender in view.senders() for update in view.updates(sender).values()]
    return bool(updates) and all(update.examples for update in updates)


@final
class _GroupEstimator:
    """The estimator of one group of targets, fitted on its virtual clients."""

    def __init__(
        self, view: View, knowledge: Knowledge, group: TargetGroup, steps: int, seed: Seed
    ) -> None:
        self._view, self._knowledge, self._group = view, knowledge, group
        self._steps, self._seed = steps, seed
        self._sizes_known = _knows_all_sizes(view) and group.cohort_size is None
        self._broadcast_outputs = read_broadcasts(view, knowledge, group.rounds, [OUTPUTS])[
            OUTPUTS
        ]
        self._bank, self._curve = simulate_until_flat(
            view,
            knowledge,
            group.rounds,
            PROBES,
            self._measure_errors,
            cohort_size=group.cohort_size,
            with_quarters=True,
        )
        self._is_tested = ~self._bank.on_quarter
        self._tested = self._bank.take(self._is_tested.nonzero().flatten())

    @property
    def clients(self) -> int:
        """The number of virtual clients."""
        return len(self._bank.counts)

    def fit(self, number: int) -> CrossFit:
        """Fit the networks of a round."""
        return self._fit(self._bank, number)

    def _measure_errors(self, simulation: Simulation) -> Float[Tensor, " tested"]:
        """Return the L1 errors of tested virtual clients, estimated from the first round."""
        is_tested = ~simulation.on_quarter
        fit = self._fit(simulation, self._group.rounds[0])
        estimates, shares = fit.virtual_estimates[:, is_tested], simulation.shares[is_tested]
        weights = fit_local_stacking(estimates, shares).weights_of_virtual()
        return (torch.einsum("ve,evc->vc", weights, estimates) - shares).abs().sum(1)

    def _fit(self, simulation: Simulation, number: int) -> CrossFit:
        position = simulation.rounds.index(number)
        sizes = simulation.sizes if self._sizes_known else None
        readings = self._readings(simulation.readings, position, sizes)
        cache = self._knowledge.compute.cache
        seed = self._seed.child("fit", number)
        return cached_cross_fit(
            cache,
            readings,
            simulation.shares,
            simulation.halves,
            simulation.on_quarter,
            self._steps,
            seed,
        )

    def claim_shares(self, fits: Sequence[CrossFit]) -> dict[Party, LabelShares]:
        virtual = torch.cat(
            [fit.virtual_estimates for fit in fits]
        )  # (estimates, virtual, classes)
        tested, shares = virtual[:, self._is_tested], self._tested.shares
        stacking = fit_local_stacking(tested, shares)
        pooled = torch.einsum("ve,evc->vc", stacking.weights_of_virtual(), tested)
        cases = CalibrationCases(pooled, shares)
        sizes = self._fit_size(stacking.pool(virtual))
        features = {
            target: read_updates(
                self._view, target, self._knowledge, self._group.rounds, PROBES
            )
            for target in self._group.targets
        }
        finite = [
            target
            for target, values in features.items()
            if all(bool(each.isfinite().all()) for each in values.values())
        ]
        likely_sizes = self._sizes_in_place_of_reports(finite, features)
        claims = {
            target: self._claim_about(
                target, features[target], fits, stacking, cases, sizes, likely_sizes.get(target)
            )
            for target in finite
        }
        doubt = self._find_doubt([features[target] for target in finite], stacking, claims)
        doubts = dict.fromkeys(likely_sizes, doubt or OTHER_SIZE)
        return {
            target: replace(
                replace(claims[target], reason_for_doubt=doubts.get(target, doubt))
                if target in claims
                else cases.prior_claim(),
                own_errors=self._curve,
            )
            for target in self._group.targets
        }

    def _find_doubt(
        self,
        features: Sequence[Mapping[Probe, Tensor]],
        stacking: LocalStacking,
        claims: Mapping[Party, LabelShares],
    ) -> str | None:
        """Compare the targets of these claims and features with virtual clients."""
        if not claims:
            return None
        bank = self._tested
        shares = torch.stack([claim.shares.double() for claim in claims.values()])
        unexplained, inputs = (
            torch.stack([each[probe] for each in features])
            for probe in (UNEXPLAINED, INPUT_NORMS)
        )
        shift = input_shift(
            bank.readings[INPUT_NORMS], inputs, bank.shares, shares, bank.halves
        )
        return find_doubt(
            bank.readings[UNEXPLAINED],
            unexplained,
            stacking.imbalances,
            imbalance(shares),
            shift,
            self._repetition(),
        )

    def _sizes_in_place_of_reports(
        self, targets: Sequence[Party], features: Mapping[Party, Mapping[Probe, Tensor]]
    ) -> dict[Party, SizeEstimate]:
        """Estimate the size of each target whose updates speak for another than it reports."""
        if not self._sizes_known:
            return {}
        numbers, outputs = _size_readings(self._bank.readings)
        regression = fit_size_regression(numbers, outputs, self._bank.sizes, self._bank.halves)
        sizes = {}
        for target in targets:
            batch = {probe: values[None] for probe, values in features[target].items()}
            estimate = regression.estimate_size(*_size_readings(batch))
            reported = fmean(map(log, self._reported_sizes(target)))
            if is_size_doubted(reported - log(estimate.examples), regression.residuals):
                sizes[target] = estimate
        return sizes

    def _reported_sizes(self, target: Party) -> list[int]:
        """Return the sizes that a target reports; 0 = none."""
        updates = self._view.updates(target)
        return [updates[number].examples or 0 for number in self._group.rounds]

    def _repetition(self) -> float:
        """Return how often a virtual client with a half trains on each example, on average."""
        auxiliary = self._knowledge.auxiliary
        assert auxiliary is not None
        counts = self._tested.counts / min(self._group.clients_per_update, MAX_COHORT_SIZE)
        different = auxiliary.labels.bincount(minlength=counts.shape[1]) * HALF_SHARE
        return float((counts.sum(1) / torch.minimum(counts, different).sum(1)).mean())

    def _claim_about(
        self,
        target: Party,
        features: Mapping[Probe, Tensor],
        fits: Sequence[CrossFit],
        stacking: LocalStacking,
        cases: CalibrationCases,
        sizes: SizeRegression,
        likely_size: SizeEstimate | None,
    ) -> LabelShares:
        reported = self._reported_sizes(target)
        if likely_size is not None:
            reported = [max(1, round(likely_size.examples))] * len(reported)
        estimates = []
        for position, fit in enumerate(fits):
            examples = reported[position] if self._sizes_known else None
            known_size = None if examples is None else torch.tensor([examples])
            batch = {probe: values[None] for probe, values in features.items()}
            estimates.append(fit.estimate_shares(self._readings(batch, position, known_size)))
        shares = normalize_to_shares(stacking.pool(torch.cat(estimates))[0])
        null = cases.null_probability(shares)
        known = [examples for examples in reported if examples]
        if likely_size is not None:
            size = likely_size
        elif len(known) == len(reported):
            mean = sum(known) / len(known)
            size = SizeEstimate(mean, mean, mean)
        else:
            size = sizes.estimate_size(features[UPDATE_NORMS].flatten()[None], shares[None])
        return LabelShares(shares.float(), null > 0.5, cases.bounds(shares), null.float(), size)

    def _readings(
        self,
        features: Mapping[Probe, Tensor],
        position: int,
        sizes: Int[Tensor, " clients"] | None,
    ) -> ProbeReadings:
        return ProbeReadings(
            features[LAST_LAYER_CHANGE][:, position],
            features[OUTPUTS][:, position],
            self._broadcast_outputs[position],
            features[CLASS_GRADIENTS][:, position],
            None if sizes is None else sizes.double().log().float(),
            None if sizes is None else steps_scale(self._knowledge.recipe, sizes),
        )

    def _fit_size(self, estimates: Float[Tensor, "virtual classes"]) -> SizeRegression:
        bank, clients = self._bank, self._group.clients_per_update
        # A virtual cohort has at most `MAX_COHORT_SIZE` members; each then represents several.
        scale = clients / min(clients, MAX_COHORT_SIZE)
        return fit_size_regression(
            bank.readings[UPDATE_NORMS].flatten(1),
            estimates,
            bank.sizes * scale,
            bank.halves,
        )


def _size_readings(
    readings: Mapping[Probe, Tensor],
) -> tuple[Float[Tensor, "clients numbers"], Float[Tensor, "clients classes"]]:
    """Return what tells a client's size without its report: numbers, and its mean output.

    All are means over rounds, so that a regression has few coefficients however many there are.
    The mean output stands for its label shares, whose estimates use the reported size. The
    longer a client trains, the worse class gradients at the broadcast explain its update.
    """
    numbers = torch.cat([readings[probe].mean(1) for probe in (UPDATE_NORMS, UNEXPLAINED)], 1)
    return numbers, mean_softmax(readings[OUTPUTS]).mean((1, 2))


def steps_scale(
    recipe: Recipe | None, sizes: Int[Tensor, " clients"]
) -> Float[Tensor, " clients"] | None:
    """Return the scale of `ProbeReadings` for SGD without other terms in its steps."""
    if recipe is None or recipe.optimizer != "sgd" or recipe.loss != "cross_entropy":
        return None
    if recipe.weight_decay or recipe.label_smoothing or recipe.proximal:
        return None
    if recipe.private_steps is not None:
        return None
    momentum = recipe.momentum
    steps = sizes.new_tensor([recipe.steps(size) for size in sizes.tolist()]).double()
    # Momentum repeats the step k before the last one 1 + m + ... + m^k times.
    cut_short = momentum * (1 - momentum**steps) / (1 - momentum)
    return (recipe.rate / (1 - momentum) * (steps - cut_short)).float()


def cached_cross_fit(
    cache: TensorCache,
    readings: ProbeReadings,
    shares: Float[Tensor, "clients classes"],
    halves: Int[Tensor, " clients"],
    on_quarter: Bool[Tensor, " clients"],
    steps: int,
    seed: Seed,
) -> CrossFit:
    """Return `fit_with_cross_fitting` of the same arguments, from the cache if possible.

    The result is the same to the bit. Attacks use a round alone and together with others; its
    networks are trained once.
    """
    of_sizes = (readings.log_sizes, readings.steps_scale)
    sizes = [one for one in of_sizes if one is not None]
    tensors = (
        readings.last_layer_change,
        readings.outputs,
        readings.broadcast_outputs,
        readings.class_gradients,
        *sizes,
    )
    shapes = (NETWORKS, COPIES, MOST_COMPONENTS, DEEP_SET_WIDTH, MLP_WIDTH, DROPOUT)
    key = text_key(repr((_digest((*tensors, shares, halves, on_quarter)), shapes, steps, seed)))
    cached = cache.load(key)
    if cached is not None:
        return CrossFit.from_tensors(cached)
    fit = fit_with_cross_fitting(readings, shares, halves, on_quarter, steps, seed)
    cache.save(key, fit.tensors())
    return fit


def _digest(tensors: tuple[Tensor, ...]) -> str:
    digest = blake2b(digest_size=20)
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


HALF_SHARE = (1 - HELD_OUT_SHARE) / HALVES
"""The part of the auxiliary examples in either half."""

RIDGE = 1e-3
"""Ridge of the regression on label shares, per virtual client."""

TINY = 1e-12


def input_shift(
    virtual: Float[Tensor, "clients rounds inputs"],
    real: Float[Tensor, "targets rounds inputs"],
    virtual_shares: Float[Tensor, "clients classes"],
    shares: Float[Tensor, "targets classes"],
    halves: Int[Tensor, " clients"],
) -> float:
    """Compare the readings of `InputNorms` of real clients with those of virtual ones.

    A regression on label shares explains how the labels of a client change its readings; what
    it leaves are residuals. The mean square of the targets' mean residual, over all inputs, is
    divided by what chance would make of it:

    - The virtual clients of the two halves have different examples of one population. A quarter
      of the mean squared difference between the halves is the variance that comes of a finite
      number of auxiliary examples.
    - The variance of the residuals over the number of targets comes of the targets' examples.

    Augmented copies are less varied than real examples, so the ratio is above 1 with few
    auxiliary examples even if nothing is wrong.

    Args:
        virtual: readings of the virtual clients.
        real: readings of the targets, all finite.
        virtual_shares: true label shares of the virtual clients.
        shares: estimated label shares of the targets.
        halves: the half of the auxiliary examples on which each virtual client trained.

    Returns:
        The ratio, averaged over rounds: about 1 if all examples come from one population; 0
        without targets, or if one half has no virtual client.

    """
    counts = halves.bincount(minlength=2)
    if not len(real) or not int(counts.min()):
        return 0.0
    known, wanted = _expand(virtual_shares), _expand(shares)
    penalty = known.new_full((known.shape[1],), RIDGE * len(known))
    ratios = []
    for number in range(virtual.shape[1]):
        readings = virtual[:, number].double()
        weights = fit_ridge(known, readings, penalty)
        rest = readings - known @ weights
        ours = real[:, number].double() - wanted @ weights
        between = rest[halves == 0].mean(0) - rest[halves == 1].mean(0)
        chance = between.square().mean() / 4 + rest.var(0).mean() / len(ours)
        ratios.append(ours.mean(0).square().mean() / (chance + TINY))
    return float(torch.stack(ratios).mean())


def _expand(shares: Float[Tensor, "clients classes"]) -> Float[Tensor, "clients numbers"]:
    """Return shares, their roots and a 1: readings are logarithms, hence concave in shares."""
    known = shares.double()
    return torch.cat((known, known.sqrt(), known.new_ones(len(known), 1)), 1)
