"""A split in which each client holds only a few of the labels."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Gt
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.data.draws import apportion
from overheard.data.partition.check_pool import check_pool
from overheard.data.partition.label_split import LabelSplit


@final
@dataclass(frozen=True, slots=True)
class Quantity(LabelSplit):
    """Every client holds a fixed number of labels, and none of the others.

    Labels are taken from shuffled lists that have each label once, so that all are used about
    equally often. A label with too few examples left is skipped. The paper draws a client's
    examples from a fixed subset of C_f labels, of which it has "a varying number of samples for
    each class"; it does not say how much they vary.

    Args:
        classes_per_client: the number of labels per client.
        alpha: of the Dirichlet distribution of the shares of these labels, each of which has at
            least one example; omitted: equal shares.

    """

    classes_per_client: Positive = 3
    alpha: Annotated[float, Gt(0)] | None = None

    name: ClassVar[str] = "quantity"
    source: ClassVar[str] = (
        "Ma et al., Whispers of Data: label quantity-based imbalance (3 classes for "
        "MNIST, Fashion-MNIST and FER2013, 2 for AG News); McMahan et al. 2017, section 3"
    )
    draws_labels_at_random: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = True
    draws_labels_in_turn: ClassVar[bool] = True

    def draw_label_counts(
        self,
        labels: Int[Tensor, " examples"],
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> Int[Tensor, "clients classes"]:
        """Choose the labels client by client."""
        check_pool(labels, sizes, classes)
        if self.classes_per_client > classes or self.classes_per_client > int(sizes.min()):
            raise PlanError(
                f"quantity: {self.classes_per_client} classes per client, but there are "
                f"{classes} classes and the smallest client holds {int(sizes.min())} examples: "
                "lower classes_per_client"
            )
        left = labels.bincount(minlength=classes)
        generator = seed.child("decks").generator()
        queue: list[int] = []
        counts = torch.zeros(len(sizes), classes, dtype=torch.long)
        for number, size in enumerate(sizes.tolist()):
            weights = torch.ones(self.classes_per_client)
            if self.alpha is not None:
                shares = seed.child("shares", number).numpy()
                weights = torch.from_numpy(shares.dirichlet(self.alpha * weights.numpy()))
            label_counts = 1 + apportion(weights, size - self.classes_per_client)
            for need in label_counts.tolist():
                is_possible = ((left >= need) & (counts[number] == 0)).tolist()
                if not any(is_possible[label] for label in queue):
                    queue += torch.randperm(classes, generator=generator).tolist()
                label = next((label for label in queue if is_possible[label]), None)
                if label is None:
                    raise PlanError(
                        f"quantity: client {number} needs {label_counts.tolist()} examples of "
                        f"{self.classes_per_client} labels, but the labels have "
                        f"{left.tolist()} left: take fewer or smaller clients, or more "
                        "classes_per_client"
                    )
                queue.remove(label)
                counts[number, label] = need
                left[label] -= need
        return counts
