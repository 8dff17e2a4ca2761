"""Label smoothing while clients train."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from overheard.core.defense import Defense, Site, Training, TrainingPart
from overheard.core.errors import PlanError


@final
@dataclass(frozen=True, slots=True)
class LabelSmoothing(Defense):
    """Clients train towards labels that give every class a little of the target.

    A target becomes (1 - smoothing) one-hot + smoothing / classes. So a class that a client
    does not hold is pulled up too, once the model gives it less than smoothing / classes, and
    the sign by which absent classes are told turns. Early in a run, when models give every
    class more, that sign tells them still.

    It does not hide how often a class occurs: under SGD the targets' mean moves from the shares
    to (1 - smoothing) shares + smoothing / classes, which who knows the smoothing undoes.
    Others found smoothed models to give away more of what a class looks like, not less
    (Struppek et al. 2024, ICLR).

    Args:
        smoothing: how much of the target all classes share evenly.

    """

    smoothing: float = 0.1

    name: ClassVar[str] = "label_smoothing"
    source: ClassVar[str] = (
        "Szegedy et al. 2016 (CVPR), section 7, who smooth for accuracy; tried here against "
        "label inference"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"
    changes_training: ClassVar[frozenset[TrainingPart]] = frozenset({"loss"})

    def __post_init__(self) -> None:
        """Refuse a smoothing that leaves nothing of the label."""
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing lies in [0, 1), got {self.smoothing}")

    def on_training(self, training: Training) -> Training:
        """Follow the same recipe towards smoothed labels.

        Labels that the recipe smooths already by s are smoothed once more: what is left of the
        one-hot target is (1 - s) (1 - smoothing).

        Raises:
            PlanError: if clients do not train towards classes.

        """
        if training.recipe.loss != "cross_entropy":
            raise PlanError(
                "label_smoothing spreads a target over classes, and these clients train by "
                f"{training.recipe.loss}: leave the defense out, or train by cross_entropy"
            )
        before = training.recipe.label_smoothing
        together = before + self.smoothing - before * self.smoothing
        return replace(training, recipe=replace(training.recipe, label_smoothing=together))
