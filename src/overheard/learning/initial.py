"""Fresh models, without disturbing anyone else's random numbers."""

from torch import nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.chance import seeded


def fresh(build_model: BuildModel, seed: Seed) -> nn.Module:
    """Build the model with weights that follow from the seed.

    Constructors draw from torch's global generator; it is left as it was found.

    Raises:
        PlanError: if the model has buffers: they are no weights, so federated averaging would
            neither send nor train them.

    """
    with seeded(seed):
        model = build_model()
    buffers = [name for name, _ in model.named_buffers()]
    if buffers:
        raise PlanError(
            f"the model keeps {', '.join(buffers[:3])} beside its weights (a batch norm's "
            "running statistics?), which are never sent: use GroupNorm in its place"
        )
    return model


def initial_weights(build_model: BuildModel, seed: Seed) -> Weights:
    """Give the weights with which a federation may start.

    Raises:
        PlanError: if the model has buffers.

    """
    model = fresh(build_model, seed)
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}
