"""How the replies of a run are read, as its owner states it to a recorder."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, final

from annotated_types import Gt

from overheard.core.recipe import Recipe
from overheard.core.settings import Settings
from overheard.recorders.replies.differences import ReplyKind, Scales

CountUnit = Literal["examples", "steps", "batches", "unknown"]
"""What clients report as their number of examples: examples; the steps of their optimizer in
the round; the batches of one epoch; or any of these, as nobody states it."""


@final
@dataclass(frozen=True, slots=True)
class ReplyReading(Settings):
    """How the replies of a run are read.

    Args:
        kind: what they hold: weights, differences from the weights that the client began from,
            or gradients.
        rate: what the server multiplies gradients by before it subtracts them.
        scales: by what whole-number codes are multiplied: a number, numbers by tensor, or the
            name under which each reply tells them; None = codes are not stored.
        began_in: the name under which a reply tells the number of the round whose model its
            client began from; "" = each began from the model that it was sent last.
        count_unit: what clients report as their number of examples.

    """

    kind: ReplyKind = "weights"
    rate: Annotated[float, Gt(0)] | None = None
    scales: Scales | str | None = None
    began_in: str = ""
    count_unit: CountUnit = "examples"

    def check_together(self) -> None:
        """Check that the rate is that of gradients."""
        if (self.kind == "gradients") != (self.rate is not None):
            raise ValueError(
                "rate is what the server multiplies gradients by: give it with "
                "kind='gradients', and with no other kind"
            )

    def count_examples(self, number: int | None, recipe: Recipe | None) -> int | None:
        """Return the number of examples that a reported number means; None if it is unknown.

        Steps and batches are converted by the recipe's batch and epochs. As the last batch of
        an epoch may be smaller, the result is at most one batch too large.
        """
        if number is None or self.count_unit == "examples":
            return number
        if recipe is None or self.count_unit == "unknown":
            return None
        batches = number / recipe.epochs if self.count_unit == "steps" else number
        return round(batches * recipe.batch)

    def find_scales(
        self, metrics: Mapping[str, float], named: Mapping[str, float]
    ) -> Scales | None:
        """Return the scales of the codes in a reply; None if nobody states them.

        Args:
            metrics: the numbers in clear text of the reply. Scales of tensors have names such
                as "scales.fc.weight" or "scales/fc.weight", if `scales` is "scales".
            named: the numbers of the record that `scales` names, if the reply has one.

        """
        if not isinstance(self.scales, str):
            return self.scales
        if named:
            return named
        if self.scales in metrics:
            return metrics[self.scales]
        prefixes = (f"{self.scales}.", f"{self.scales}/")
        return {
            name[len(prefixes[0]) :]: value
            for name, value in metrics.items()
            if name.startswith(prefixes)
        } or None


AS_WEIGHTS = ReplyReading()
"""Replies hold weights, begun from the model that was sent, and report examples."""
