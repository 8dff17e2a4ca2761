"""Dropout before the last layer while clients train."""

from dataclasses import dataclass
from typing import ClassVar, final

from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.defense import BuildModel, Defense, Site, Training, TrainingPart
from overheard.core.errors import PlanError


@final
@dataclass(frozen=True, slots=True)
class Dropout(Defense):
    """Each input of the last layer is left out at random while clients train.

    It blurs the last layer's rows, which label inference reads, and promises nothing.
    Parameters keep their names, so weights travel as they would without it. The draws come
    from torch's global generator, as `nn.Dropout`'s always do: who trains must seed it.

    Args:
        rate: the chance that an input is left out.

    """

    rate: float = 0.5

    name: ClassVar[str] = "dropout"
    source: ClassVar[str] = (
        "Srivastava et al. 2014 (JMLR 15); tried as a defense by Dai et al. (Decaf, arXiv "
        "2405.15316, section on defenses), which does not say where it stands: here before the "
        "last layer"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"
    changes_training: ClassVar[frozenset[TrainingPart]] = frozenset({"model"})

    def __post_init__(self) -> None:
        """Refuse a chance that is none, or that leaves nothing over."""
        if not 0 <= self.rate < 1:
            raise ValueError(f"the rate of dropout lies in [0, 1), got {self.rate}")

    def on_training(self, training: Training) -> Training:
        """Build the same model with dropout before its last `nn.Linear`.

        Raises:
            PlanError: when the model is built, if it has no `nn.Linear`.

        """
        return Training(DroppedModel(training.build_model, self.rate), training.recipe)


@final
@dataclass(frozen=True, slots=True)
class DroppedModel:
    """Builds a model that has dropout before its last layer.

    A value, not a closure, so that it can be sent to worker processes.
    """

    build_model: BuildModel
    rate: float

    def __call__(self) -> nn.Module:
        """Build the model, its last plain `nn.Linear` (in order of registration) replaced.

        Raises:
            PlanError: if it has none.

        """
        model = self.build_model()
        # Subclasses are left alone: their own forward would be lost. One of them is the output
        # projection of `nn.MultiheadAttention`, whose forward is never called anyway.
        last = [path for path, part in model.named_modules() if type(part) is nn.Linear][-1:]
        if not last:
            raise PlanError(
                "the defense `dropout` needs a model with an nn.Linear layer, and "
                f"{type(model).__name__} has none: choose another model or leave dropout out"
            )
        linear = model.get_submodule(last[0])
        assert isinstance(linear, nn.Linear)
        dropped = DroppedLinear(linear, self.rate)
        if not last[0]:
            return dropped
        parent, _, own = last[0].rpartition(".")
        setattr(model.get_submodule(parent), own, dropped)
        return model


@final
class DroppedLinear(nn.Linear):
    """A linear layer behind an `nn.Dropout`, with the parameters and names of a plain one.

    Wrapping both in an `nn.Sequential` would rename the parameters, and weights are matched
    by name. The dropout is a module of its own, so that who trains can see that a pass draws at
    random.
    """

    def __init__(self, linear: nn.Linear, rate: float) -> None:
        # On the meta device no weights are drawn, so no generator moves.
        super().__init__(
            linear.in_features, linear.out_features, linear.bias is not None, device="meta"
        )
        self.weight = linear.weight
        self.bias = linear.bias
        self.dropout = nn.Dropout(rate)

    def forward(
        self, input: Float[Tensor, "*examples inputs"]
    ) -> Float[Tensor, "*examples outputs"]:
        """Drop, then map."""
        dropped: Tensor = self.dropout(input)
        return super().forward(dropped)
