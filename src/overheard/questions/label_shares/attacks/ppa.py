"""Label shares from a linear classifier on the model's sensitivity to each class."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, final

import torch
from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.attack import Attack, TrainingSource
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights, apply_update
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import Party
from overheard.core.recipe import Rate, Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive, Settings
from overheard.core.view import View
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)
from overheard.learning.fitting.standardizer import fit_standardizer
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import find_last_layer
from overheard.learning.sent_tensors import trainable_parameters
from overheard.learning.simplex import normalize_to_shares
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.learning_curve import (
    errors_by_halves,
    simulate_until_flat,
)
from overheard.simulation.chunk import CHUNK
from overheard.simulation.probe import Probe, ProbeContext
from overheard.simulation.simulation import Simulation, read_updates
from overheard.simulation.target_groups import group_targets


@final
@dataclass(frozen=True, slots=True)
class DifferentialSensitivity(Settings, Probe):
    """Sensitivity of the broadcast minus that of the client's model, for each class.

    To measure the sensitivity to class c, the model is trained on examples of c alone. The
    absolute changes of one layer are summed and divided by the learning rate (Zhou et al. 2023
    and their code). A model just trained on many examples of c has less left to learn from c.
    The difference is therefore large for classes of which a client holds many examples.

    The examples are held out from all virtual clients, as real clients have not trained on them
    either. Every model gets them in the same order.

    Each class of each client and round costs training on `samples * epochs` examples.

    Args:
        layer: "last", or the name of the module that is measured, such as "features.6".
        samples: at most this many held-out examples per class.
        epochs: epochs of training.
        batch: examples per step.
        rate: learning rate of Adam.

    """

    layer: str = "last"
    samples: Positive = 128
    epochs: Positive = 5
    batch: Positive = 32
    rate: Rate = 1e-3

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients classes"]:
        """Return the differences of each client.

        Raises:
            NeedsError: if the model has no layer of that name.

        """
        names = _parameter_names(context, self.layer)
        before = self._sensitivity(context, context.broadcast, names)
        return torch.stack(
            [
                before
                - self._sensitivity(context, apply_update(context.broadcast, delta), names)
                for delta in deltas
            ]
        )

    def _sensitivity(
        self, scene: ProbeContext, weights: Weights, names: Sequence[str]
    ) -> Float[Tensor, " classes"]:
        labels = scene.held_out.labels
        rows = [(labels == label).nonzero().flatten() for label in range(scene.classes)]
        # The name seeds the batches. It has no label, so permuting labels changes no result.
        members = [ClientTask(f"{int(own[0])}", own[: self.samples]) for own in rows]
        trained = train_cohort(
            scene.build_model,
            weights,
            scene.held_out,
            members,
            self._recipe(),
            seed=scene.seed.child("sensitivity"),
            round=scene.round,
            chunk=CHUNK,
            workers=1,
            device=scene.device,
        )
        sums = [
            torch.stack([result.delta[name].abs().sum() for name in names]).sum()
            for result in trained
        ]
        return torch.stack(sums).float() / self.rate

    def _recipe(self) -> Recipe:
        return Recipe(self.rate, self.epochs, self.batch, optimizer="adam")


def _parameter_names(scene: ProbeContext, layer: str) -> list[str]:
    model = fresh_model(scene.build_model, Seed(0))
    if layer == "last":
        last = find_last_layer(model)
        return [last.weight, *([] if last.bias is None else [last.bias])]
    names = [name for name in trainable_parameters(model) if name.startswith(f"{layer}.")]
    if not names:
        known = sorted({name.rpartition(".")[0] for name in trainable_parameters(model)})
        raise NeedsError(
            f"the model has no layer {layer!r} with parameters: choose 'last' or one of "
            f"{', '.join(known)}"
        )
    return names


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
    quick_settings: ClassVar = {"epochs": 20, "retraining": 1, "samples": 32}
    accurate_settings: ClassVar = {"epochs": 200, "samples": 64}
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
                partial(errors_by_halves, estimate),
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
            knowledge.compute.own_device,
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
