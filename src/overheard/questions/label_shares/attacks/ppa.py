"""Label shares from a linear classifier on the model's sensitivity to each class."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, final

from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.attack import Attack, TrainingSource
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)
from overheard.learning.fitting.standardizer import fit_standardizer
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.differential_sensitivity import (
    DifferentialSensitivity,
)
from overheard.questions.label_shares.estimators.learning_curve import (
    estimate_by_halves,
    simulate_until_flat,
)
from overheard.simulation.simulation import Simulation, read_updates
from overheard.simulation.target_groups import group_targets


@final
@dataclass(frozen=True, slots=True)
class Ppa(Attack[LabelShares]):
    """A linear classifier on the differential sensitivity to each class.

    The paper asks for a client's most frequent class. Form "preference" is its method. It takes
    the classifier's probabilities as shares, as Ma et al. 2025 do for comparison. They express
    how certain the classifier is of one class, so as shares they are far too peaked and often
    worse than even shares. Form "shares" fits the same classifier to the shares themselves:
    the fair comparison, and the default.

    Differs from the paper: (1) There is no selective aggregation, which is an active attack.
    (2) Virtual clients follow the prior; the paper's hold 3,000 examples of one class and 200
    of every other. (3) Sensitivities are standardised; the code stores them as JPEG. (4) Rounds
    can be concatenated; the paper uses one. (5) Sensitivity is that of the last layer unless
    another is named; the code uses its last convolution.

    Each virtual client, target and round costs training on about classes * samples * epochs
    examples, usually more than training the virtual clients themselves.

    Args:
        form: what the classifier is fitted to.
        layer: the layer whose sensitivity is read: "last", or a module's name.
        samples: at most this many examples of each class are used for retraining.
        retraining: epochs of retraining.
        most_rounds: at most this many rounds are read: the first ones.
        epochs: epochs of fitting the classifier.
        batch: virtual clients per step.
        rate: learning rate of Adam when fitting the classifier (Keras's default).

    """

    form: Literal["shares", "preference"] = "shares"
    layer: str = "last"
    samples: Positive = 128
    retraining: Positive = 5
    most_rounds: Positive = 1
    epochs: Positive = 1000
    batch: Positive = 128
    rate: Annotated[float, Gt(0)] = 1e-3

    name: ClassVar[str] = "ppa"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "Zhou et al. 2023, PPA: Preference Profiling Attack Against Federated Learning (NDSS; "
        "arXiv 2202.04856), with their code; as an estimator of shares after Ma et al. 2025"
    )
    is_label_equivariant: ClassVar[bool] = False

    def training_source(self) -> TrainingSource:
        """Return which parties' updates it learns from."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim the classifier's estimate for each target."""
        probe = self._probe()
        claims = {}
        for group in group_targets(view, targets, self.most_rounds):
            fit = partial(self._fit, knowledge, seed.child(self.name, *group.rounds))

            def estimate(train: Simulation, test: Simulation, fit: _Fit = fit) -> Tensor:
                return fit(train)(test.readings[probe].flatten(1))

            simulation, curve = simulate_until_flat(
                view,
                knowledge,
                group.rounds,
                [probe],
                partial(estimate_by_halves, estimate),
                cohort_size=group.cohort_size,
            )
            classify = fit(simulation)
            for target in group.targets:
                own = read_updates(view, target, knowledge, group.rounds, [probe])[probe]
                shares = normalize_to_shares(classify(own.flatten()[None])[0])
                claims[target] = LabelShares(shares.float(), own_errors=curve)
        return claims

    def _fit(self, knowledge: Knowledge, seed: Seed, simulation: Simulation) -> "_Classifier":
        """Fit the classifier to virtual clients."""
        features = simulation.readings[self._probe()].flatten(1)  # (virtual, rounds * classes)
        scale = fit_standardizer(features)
        network = fit_share_network(
            partial(nn.Linear, features.shape[1], knowledge.classes),
            scale.standardize(features),
            simulation.shares
            if self.form == "shares"
            else preference_targets(simulation.shares),
            kl_divergence,
            self._schedule(),
            seed,
            knowledge.compute.device,
        )
        return lambda features: predict_shares(network, scale.standardize(features))

    def _probe(self) -> DifferentialSensitivity:
        return DifferentialSensitivity(self.layer, self.samples, self.retraining)

    def _schedule(self) -> FitSchedule:
        return FitSchedule(self.epochs, self.batch, self.rate)


_Classifier = Callable[[Float[Tensor, "clients features"]], Float[Tensor, "clients classes"]]
"""Estimates shares from sensitivities."""

_Fit = Callable[[Simulation], _Classifier]


def preference_targets(
    shares: Float[Tensor, "clients classes"],
) -> Float[Tensor, "clients classes"]:
    """Give each client's most frequent class, the first one if tied, a share of 1.

    With these targets the divergence equals the cross-entropy that the paper minimises.
    """
    most_frequent = shares.argmax(1)
    return nn.functional.one_hot(most_frequent, shares.shape[1]).to(shares.dtype)
