"""Label shares from a convolutional network on the last layer's changes over rounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, final

import torch
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
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.learning_curve import (
    errors_by_halves,
    simulate_until_flat,
)
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import Simulation, read_updates
from overheard.simulation.target_groups import group_targets

LAST_LAYER_CHANGE = LastLayerChange()

SHARE_DIGITS = 2
CLAIM_DIGITS = 3
"""Digits to which Gu and Bai's code rounds true and claimed shares."""


@final
@dataclass(frozen=True, slots=True)
class Ldia(Attack[LabelShares]):
    """A network trained on virtual clients reads the changes of the last layer's weight.

    The changes of up to `most_rounds` rounds are stacked into an image of rounds x (classes *
    features). A convolutional network (`build_ldia_network`) estimates label shares
    from it. One network is trained for each distinct set of observed rounds.

    Cost, in addition to the simulation: `epochs` passes over the virtual clients for each
    network. With 1,200 virtual clients, 10 classes, 10 rounds and one core, this takes about
    4 minutes for a last layer of 64 features and 8 hours for 512: the first convolution grows
    with the square of its width. Without convolutions it takes half a minute and 5 minutes.

    Differs from the paper: (1) Virtual clients start from the observed broadcasts; in the paper
    each joins a federated averaging of its own. (2) Their sizes follow the prior; in the paper
    the attacker knows the true ones. (3) Their label shares follow the prior, whose default
    mixture includes the paper's (`data.splits.faces`).

    Args:
        loss: "corrected" is the divergence stated in the paper; "published" is what its code
            computes: PyTorch's KLDivLoss on probabilities instead of log-probabilities, which
            is lowest when the largest class is claimed to have everything.
        convolutions: whether the network has the paper's convolutions or only its linear
            layers, which it has for few rounds anyway.
        rounding: whether true shares are rounded to 2 digits, and claims to 3, as in the code.
        most_rounds: at most this many rounds are in the image: the first ones.
        epochs: epochs of training; the rate falls to a tenth after `slow_after`.
        batch: virtual clients per step.
        rate: learning rate of Adam.
        slow_after: epochs at the full rate.

    """

    loss: Literal["corrected", "published"] = "corrected"
    rounding: bool = True
    convolutions: bool = True
    most_rounds: Positive = 10
    epochs: Positive = 100
    batch: Positive = 64
    rate: Annotated[float, Gt(0)] = 1e-3
    slow_after: int = 51

    name: ClassVar[str] = "ldia"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "Gu and Bai 2023, LDIA: Label Distribution Inference Attack Against Federated Learning "
        "in Edge Computing (JISA 74), with their code"
    )
    quick_settings: ClassVar = {"epochs": 10}
    is_label_equivariant: ClassVar[bool] = False

    def training_source(self) -> TrainingSource:
        """Return which parties' updates it learns from."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim the network's estimate for each target."""
        claims = {}
        for group in group_targets(view, targets, self.most_rounds):
            fit = partial(self._fit, knowledge, seed.child(self.name, *group.rounds))
            simulation, curve = simulate_until_flat(
                view,
                knowledge,
                group.rounds,
                [LAST_LAYER_CHANGE],
                partial(errors_by_halves, partial(_estimate, fit)),
                cohort_size=group.cohort_size,
            )
            network = fit(simulation)
            for target in group.targets:
                features = read_updates(
                    view, target, knowledge, group.rounds, [LAST_LAYER_CHANGE]
                )
                estimate = predict_shares(
                    network, _stack_images(features[LAST_LAYER_CHANGE][None])
                )[0]
                if self.rounding:
                    estimate = estimate.round(decimals=CLAIM_DIGITS)
                claims[target] = LabelShares(
                    normalize_to_shares(estimate).float(), own_errors=curve
                )
        return claims

    def _fit(self, knowledge: Knowledge, seed: Seed, simulation: Simulation) -> nn.Module:
        """Fit the network to virtual clients."""
        images = _stack_images(simulation.readings[LAST_LAYER_CHANGE])
        _, rounds, width = images.shape
        return fit_share_network(
            partial(
                build_ldia_network,
                rounds,
                width,
                knowledge.classes,
                convolutions=self.convolutions,
            ),
            images,
            rounded_shares(simulation.shares) if self.rounding else simulation.shares,
            kl_divergence if self.loss == "corrected" else published_loss,
            self._schedule(),
            seed,
            knowledge.compute.own_device,
        )

    def _schedule(self) -> FitSchedule:
        return FitSchedule(self.epochs, self.batch, self.rate, self.slow_after)


def _estimate(
    fit: Callable[[Simulation], nn.Module], train: Simulation, test: Simulation
) -> Float[Tensor, "virtual classes"]:
    return predict_shares(fit(train), _stack_images(test.readings[LAST_LAYER_CHANGE]))


def rounded_shares(
    shares: Float[Tensor, "clients classes"],
) -> Float[Tensor, "clients classes"]:
    """Round shares to 2 digits; the last class gets the rest of 1, at least 0."""
    first = shares[:, :-1].round(decimals=SHARE_DIGITS)
    return torch.cat([first, (1 - first.sum(1, keepdim=True)).clamp(min=0)], 1)


def published_loss(
    logits: Float[Tensor, "clients classes"], shares: Float[Tensor, "clients classes"]
) -> Float[Tensor, ""]:
    """Return the mean over clients and classes of  s (ln s - p), with p rounded to 3 digits.

    The gradient ignores the rounding (straight-through estimator).
    """
    exact = logits.softmax(1)
    rounded = exact + (exact.detach().round(decimals=CLAIM_DIGITS) - exact.detach())
    loss: Tensor = torch.special.xlogy(shares, shares) - shares * rounded
    return loss.mean()


def _stack_images(
    change: Float[Tensor, "clients rounds classes columns"],
) -> Float[Tensor, "clients rounds params"]:
    """Flatten the changes without the last column, the bias, which the paper leaves out."""
    return change[..., :-1].flatten(2)


CHANNELS = (64, 192)
HIDDEN = (512, 64)
KERNEL = 5
PADDING = 5
STRIDE = 4
POOL = 2


def build_ldia_network(
    rounds: int, width: int, classes: int, *, convolutions: bool = True
) -> nn.Sequential:
    """Build the network from inputs of (clients, rounds, width) to logits.

    Gu and Bai 2023, as in their code: convolution (64 channels, 5 rounds by 5 * ratio numbers,
    stride 4, padding 5), pool, convolution (192 channels, 5 by 5, padding 2), pool, then layers
    of 512 and 64 units. All have ReLU, and linear layers have Glorot initialization.

    As in their code, a convolution whose output would be empty is omitted. With fewer than five
    rounds this is the usual case, as the first kernel is then wider than the image. Only the
    linear layers on all numbers remain, as without `convolutions`.

    On one core a step on 64 images takes 0.13 s for 10 rounds of 640 numbers and 15 s for 10 of
    5,120, as the first kernel grows with the width; 0.014 and 0.14 s without convolutions.
    """
    image = _Image(rounds, width)
    once = image.after_first_block(_kernel_ratio(image))
    twice = _Image(once.rounds // POOL, once.width // POOL)
    layers: list[nn.Module] = []
    numbers = rounds * width
    if convolutions and once.has_pixels:
        kernel = (KERNEL, KERNEL * _kernel_ratio(image))
        layers = [
            nn.Unflatten(1, (1, rounds)),
            nn.Conv2d(1, CHANNELS[0], kernel, stride=STRIDE, padding=PADDING),
            nn.ReLU(),
            nn.MaxPool2d(POOL),
        ]
        numbers = CHANNELS[0] * once.rounds * once.width
    if convolutions and once.has_pixels and twice.has_pixels:
        layers += [
            nn.Conv2d(*CHANNELS, KERNEL, padding=KERNEL // 2),
            nn.ReLU(),
            nn.MaxPool2d(POOL),
        ]
        numbers = CHANNELS[1] * twice.rounds * twice.width
    linear = [nn.Linear(numbers, HIDDEN[0]), nn.Linear(*HIDDEN), nn.Linear(HIDDEN[1], classes)]
    for layer in linear:
        nn.init.xavier_uniform_(layer.weight)
    return nn.Sequential(
        *layers, nn.Flatten(), linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2]
    )


@dataclass(frozen=True, slots=True)
class _Image:
    rounds: int
    width: int

    @property
    def has_pixels(self) -> bool:
        return self.rounds > 0 and self.width > 0

    def after_first_block(self, ratio: int) -> "_Image":
        """Return the size after the first convolution and its pool; 0 or less = empty."""
        return _Image(
            _pooled_length(self.rounds, KERNEL), _pooled_length(self.width, KERNEL * ratio)
        )


def _pooled_length(length: int, kernel: int) -> int:
    return ((length + 2 * PADDING - kernel) // STRIDE + 1) // POOL


def _kernel_ratio(image: _Image) -> int:
    """Return width over rounds, rounded down to whole hundreds or tens; 1 below ten."""
    ratio = image.width // image.rounds
    for unit in (100, 10):
        if ratio >= unit:
            return ratio // unit * unit
    return 1
