"""Dropout before the last layer while clients train."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Lt
from torch import nn

from overheard.core.defense import BuildModel, Defense, LocalTraining, TrainingPart
from overheard.core.errors import PlanError
from overheard.core.mechanism import Site
from overheard.learning.last_layer import DroppedLinear


@final
@dataclass(frozen=True, slots=True)
class Dropout(Defense):
    """Clients train with dropout on the inputs of the last layer.

    It makes the last layer's gradients, which label inference uses, noisier; there is no formal
    promise. Parameters keep their names, so weights are sent as without it. The draws come
    from torch's global generator, as always with `nn.Dropout`, so the training engine seeds it.

    Args:
        rate: probability that an input is dropped.

    """

    rate: Annotated[float, Ge(0), Lt(1)] = 0.5

    name: ClassVar[str] = "dropout"
    source: ClassVar[str] = (
        "Srivastava et al. 2014 (JMLR 15); tried as a defense by Dai et al. (Decaf, arXiv "
        "2405.15316, section on defenses), which does not name the layer: here before the last "
        "layer"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"
    changes_training: ClassVar[frozenset[TrainingPart]] = frozenset({"model"})

    def on_training(self, training: LocalTraining) -> LocalTraining:
        """Return a training of the same model with dropout before its last `nn.Linear`.

        Raises:
            PlanError: when the model is built, if it has no `nn.Linear`.

        """
        return LocalTraining(ModelWithDropout(training.build_model, self.rate), training.recipe)


@final
@dataclass(frozen=True, slots=True)
class ModelWithDropout:
    """A builder of a model with dropout before its last layer.

    A dataclass and not a closure, so that it can be pickled for worker processes.
    """

    build_model: BuildModel
    rate: float

    def __call__(self) -> nn.Module:
        """Build the model, and replace its last plain `nn.Linear` (in order of registration).

        Raises:
            PlanError: if the model has none.

        """
        model = self.build_model()
        # Subclasses are not replaced, as their own forward would be lost. One of them is the
        # output projection of `torch.nn.MultiheadAttention`, whose forward is never called.
        last = [path for path, part in model.named_modules() if type(part) is nn.Linear][-1:]
        if not last:
            raise PlanError(
                "the defense `dropout` needs a model with an nn.Linear layer, but "
                f"{type(model).__name__} has none; choose another model or remove the defense"
            )
        linear = model.get_submodule(last[0])
        assert isinstance(linear, nn.Linear)
        dropped = DroppedLinear(linear, self.rate)
        if not last[0]:
            return dropped
        parent, _, name = last[0].rpartition(".")
        setattr(model.get_submodule(parent), name, dropped)
        return model
