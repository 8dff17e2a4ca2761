"""How clients distil what they hold, where distilled data travel in place of weights."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from overheard.core.recipe import LARGEST


@final
@dataclass(frozen=True, slots=True)
class Flip:
    """Local distillation of FLiP, and what the server takes the mean of.

    All clients start from the same weights and the same synthetic examples. In a round each
    client changes the examples so that a pass over them teaches a model what its own data ask
    for; the server takes the mean of all clients' examples, labels and rates, one by one. The
    model is one pass over the last round's examples.

    The paper does not name the optimiser of the synthetic data. Plain descent at its rate of
    0.01 learns next to nothing, as the slopes after rates dwarf those after pixels, and its
    ancestor (Sucholutsky and Schonlau 2021) has Adam: so Adam is the likely reading, inferred,
    and its rates are ours. Adam's moments stay with each client from round to round. The paper
    distils for 30 epochs of batches of 1,024 a round, with 12,000 examples a client that is
    360 steps; one step a round, over more rounds, costs a fraction and shares its training
    among all clients.

    A client that lacks a class has nothing to say of its examples: under "mask" it says so, and
    they are the mean of the other clients' (which tells the server what it lacks); under
    "average" it counts all the same, as if the paper's assumption held that nobody lacks any.

    Args:
        samples: synthetic examples of each class.
        steps: of distillation in a round.
        batch: a client's own examples that a step looks at; all, where it holds fewer.
        optimizer: of the synthetic data.
        input_rate: its rate for inputs.
        label_rate: its rate for soft labels.
        rate_rate: its rate for the examples' learning rates.
        first_rate: the examples' learning rate at the start.
        halve_every: after how many rounds each all three rates are halved; 0 = never.
        lacking: what is done where a client lacks a class.

    """

    samples: int = 10
    steps: int = 1
    batch: int = 1024
    optimizer: Literal["adam", "sgd"] = "adam"
    input_rate: float = 0.1
    label_rate: float = 0.03
    rate_rate: float = 0.001
    first_rate: float = 0.02
    halve_every: int = 40
    lacking: Literal["mask", "average"] = "mask"

    name: ClassVar[str] = "flip"
    source: ClassVar[str] = (
        "FLiP: Privacy-Preserving Federated Learning via Dataset Distillation (arXiv "
        "2410.19548), Section IV and Algorithm 1"
    )

    def __post_init__(self) -> None:
        """Refuse a distillation that cannot be."""
        if min(self.samples, self.steps, self.batch) < 1:
            raise ValueError(f"samples, steps and batch are 1 or more, got {self}")
        rates = (self.input_rate, self.label_rate, self.rate_rate)
        if not all(0 <= rate < LARGEST for rate in rates) or not any(rates):
            raise ValueError(f"rates of the distillation are 0 or more, not all 0, got {self}")
        if not 0 < self.first_rate < LARGEST:
            raise ValueError(f"first_rate is above 0, got {self.first_rate}")
        if self.halve_every < 0:
            raise ValueError(f"halve_every is 0 or more, got {self.halve_every}")

    def scale(self, round: int) -> float:
        """By what the rates of the distillation are multiplied in a round."""
        return 0.5 ** (round // self.halve_every) if self.halve_every else 1.0
