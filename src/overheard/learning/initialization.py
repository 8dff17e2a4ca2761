"""Fresh models with seeded weights."""

from torch import nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.seeding import seeded


def fresh_model(build_model: BuildModel, seed: Seed) -> nn.Module:
    """Build the model with weights drawn from the seed.

    The state of torch's global generator, from which constructors draw, is restored.

    Raises:
        PlanError: if the model has buffers, which federated averaging neither sends nor trains.

    """
    with seeded(seed):
        model = build_model()
    buffers = [name for name, _ in model.named_buffers()]
    if buffers:
        raise PlanError(
            f"model: it has buffers ({', '.join(buffers[:3])}; perhaps the running statistics "
            "of a batch norm), which are never sent; use GroupNorm instead"
        )
    return model


def initial_weights(build_model: BuildModel, seed: Seed) -> Weights:
    """Draw the initial weights of a federation.

    Raises:
        PlanError: if the model has buffers.

    """
    model = fresh_model(build_model, seed)
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}
