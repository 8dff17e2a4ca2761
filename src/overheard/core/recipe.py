"""The local training of a client, from broadcast to update."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt

from overheard.core.settings import Positive, Settings
from overheard.core.task import TaskKind

OptimizerName = Literal["sgd", "adam", "adamw", "adadelta"]

LossName = Literal["cross_entropy", "squared_error", "binary_cross_entropy", "next_token"]

LOSSES_OF_TASKS: Mapping[TaskKind, tuple[LossName, ...]] = MappingProxyType(
    {
        "classification": ("cross_entropy", "squared_error"),
        "multi_label": ("binary_cross_entropy",),
        "regression": ("squared_error",),
        "language_modeling": ("next_token",),
    }
)
"""The losses that each kind of task can be trained with; the usual one first."""

BatchSampling = Literal["poisson", "shuffled"]
"""How the batches of an epoch are drawn: each example by itself with the same probability, or
as parts of a shuffled order, so that each example occurs once."""

Precision = Literal["float32", "tf32", "bf16"]
"""How far the factors of products may be rounded on a GPU: not at all, to the 10 bits of
mantissa of TF32, or to the 7 of bfloat16. Sums are in float32. A CPU rounds nothing."""

LARGEST_FLOAT32 = 3e38
"""About the largest float32; settings are converted to the float32 of the weights."""

Rate = Annotated[float, Gt(0), Lt(LARGEST_FLOAT32)]
"""A learning rate."""

Decay = Annotated[float, Ge(0), Lt(LARGEST_FLOAT32)]
"""A factor of a penalty, or a rate that may be 0."""


@dataclass(frozen=True, slots=True)
class PrivateSteps(Settings):
    """The steps of DP-SGD (Abadi et al. 2016, Algorithm 1), for the gradient of a recipe.

    The gradient g of each example of a batch is clipped to `clip`; their sum gets noise and is
    divided by the expected size of a batch, examples / batches, as in Opacus:

        (sum of min(1, clip / ||g||) g + noise_multiplier clip Gaussian) batches / examples

    A batch without examples is a step of noise alone.

    Args:
        clip: largest L2 norm of the gradient of an example, over all parameters.
        noise_multiplier: standard deviation of the noise, in units of `clip`; 0 = clip only.
        batches: batches of an epoch, whatever the number of examples.
        sampling: how they are drawn; "poisson": each example with probability 1 / batches.

    """

    clip: Annotated[float, Gt(0), Lt(LARGEST_FLOAT32)]
    noise_multiplier: Annotated[float, Ge(0), Lt(LARGEST_FLOAT32)]
    batches: Positive
    sampling: BatchSampling


@dataclass(frozen=True, slots=True)
class Recipe(Settings):
    """Local training: minibatch descent on the mean loss of a batch.

    In a task with classes, the loss is the cross-entropy or, for labels that are ordered
    ratings such as stars, the squared error of the model's expected rating:
    (sum over c of c softmax_c - label)^2.
    Orekondy et al. 2018 (Gradient-Leaks, Section 5.1) use one linear output for the rating.
    Here each rating has its own output, so that models, and attacks on their last layer, stay
    unchanged. The expected rating stays in range, and its gradient vanishes as the softmax
    saturates.

    In a regression, the loss is the squared error of the outputs, averaged over them. Where
    several labels may apply, it is the binary cross-entropy of each label, averaged over them.
    Of a causal language model it is "next_token", the cross-entropy of each token given those
    before it, averaged over the tokens of a text and then over texts. Libraries average over
    all tokens of a batch instead, in which longer texts count more.
    `LOSSES_OF_TASKS` names the losses of each kind of task.

    Args:
        rate: the local learning rate (Adadelta: PyTorch's, which multiplies a unit-free step).
        epochs: passes over the client's examples per round.
        batch: examples per step; the last step of an epoch takes the remainder.
        optimizer: its state is reset every round, as in FedAvg.
        momentum: for SGD only.
        weight_decay: L2, added to the gradient as in PyTorch; of AdamW, each step instead
            multiplies the weights by 1 - rate * weight_decay. PyTorch's AdamW has 0.01 if
            nothing is given; here it is 0.
        label_smoothing: s in the target (1 - s) one-hot + s / classes, as in PyTorch; for the
            cross-entropy only.
        loss: minimized on average over a batch.
        proximal: mu in the penalty mu / 2 ||w - w_t||^2 on the distance from the weights w_t of
            the broadcast, which FedProx adds to the loss (Li et al. 2020, equation (2)).
        private_steps: the gradient and the batches of DP-SGD, in place of the mean gradient of
            batches of `batch`; None = no DP-SGD.
        precision: of products on a GPU. It is the least one: a product that a GPU has no faster
            way for is more precise.

    """

    rate: Rate
    epochs: Positive
    batch: Positive
    optimizer: OptimizerName = "sgd"
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0
    weight_decay: Decay = 0.0
    label_smoothing: Annotated[float, Ge(0), Lt(1)] = 0.0
    loss: LossName = "cross_entropy"
    proximal: Decay = 0.0
    private_steps: PrivateSteps | None = None
    precision: Precision = "float32"

    def check_together(self) -> None:
        """Refuse settings that another optimizer or loss would ignore."""
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum applies to sgd only: remove it for {self.optimizer}")
        if self.label_smoothing and self.loss != "cross_entropy":
            raise ValueError(
                f"label_smoothing applies to cross_entropy only: remove it for {self.loss}"
            )

    def __repr__(self) -> str:
        """Give all settings; stored names have only those of the last three that are set."""
        later = ("proximal", "private_steps", "precision")
        named = [
            one.name
            for one in fields(self)
            if one.name not in later or getattr(self, one.name) != one.default
        ]
        return f"Recipe({', '.join(f'{name}={getattr(self, name)!r}' for name in named)})"

    def steps(self, examples: int, epochs: int | None = None) -> int:
        """Return a client's optimizer steps per round for this number of examples.

        Args:
            examples: number of the client's examples.
            epochs: number of its epochs; None = those of the recipe.

        """
        private = self.private_steps
        batches = -(-examples // self.batch) if private is None else private.batches
        return (self.epochs if epochs is None else epochs) * batches

    def batch_size(self, examples: int) -> int:
        """Return how many of a client's examples are in a full step, rounded up if expected."""
        if self.private_steps is None:
            return min(self.batch, examples)
        return -(-examples // self.private_steps.batches)
