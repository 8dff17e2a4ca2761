"""Label smoothing while clients train."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Lt

from overheard.core.defense import Defense, LocalTraining, TrainingPart
from overheard.core.errors import PlanError
from overheard.core.mechanism import Site


@final
@dataclass(frozen=True, slots=True)
class LabelSmoothing(Defense):
    """Clients train on smoothed labels, which give every class a part of the target.

    A target becomes (1 - smoothing) one-hot + smoothing / classes. So the gradient also raises
    a class that a client does not hold, once the model's probability for it is below smoothing
    / classes. The sign that reveals absent classes then flips. Early in a run, when
    probabilities are higher, the sign still reveals them.

    It does not hide label shares: with SGD the mean target changes from the shares to (1 -
    smoothing) shares + smoothing / classes, which is invertible if the smoothing is known.
    Struppek et al. (2024, ICLR) found that smoothed models leak more about the appearance of a
    class, not less.

    Args:
        smoothing: part of the target that is spread evenly over all classes.

    """

    smoothing: Annotated[float, Ge(0), Lt(1)] = 0.1

    name: ClassVar[str] = "label_smoothing"
    source: ClassVar[str] = (
        "Szegedy et al. 2016 (CVPR), section 7, for accuracy; used here as a defense against "
        "label inference"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"
    changes_training: ClassVar[frozenset[TrainingPart]] = frozenset({"loss"})

    def on_training(self, training: LocalTraining) -> LocalTraining:
        """Return the same training with smoothed labels.

        If the recipe smooths labels by s already, they are smoothed again: the weight of the
        one-hot target becomes (1 - s) (1 - smoothing).

        Raises:
            PlanError: if the loss of the recipe is not the cross-entropy.

        """
        if training.recipe.loss != "cross_entropy":
            raise PlanError(
                "label_smoothing: it needs the loss cross_entropy, but the recipe's loss is "
                f"{training.recipe.loss}; remove the defense, or choose cross_entropy"
            )
        before = training.recipe.label_smoothing
        combined = before + self.smoothing - before * self.smoothing
        return replace(training, recipe=replace(training.recipe, label_smoothing=combined))
