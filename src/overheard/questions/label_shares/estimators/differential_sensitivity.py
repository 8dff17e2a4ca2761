"""The sensitivity of a model to a little training on each class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.messages import Weights, apply_update
from overheard.core.recipe import Rate, Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive, Settings
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import find_last_layer
from overheard.learning.sent_tensors import trainable_parameters
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.simulation.chunk import CHUNK
from overheard.simulation.probe import Probe, ProbeContext


@final
@dataclass(frozen=True, slots=True)
class DifferentialSensitivity(Settings, Probe):
    """Sensitivity of the broadcast minus that of the client's model, for each class.

    To measure the sensitivity to class c, the model is trained on examples of c alone. The
    absolute changes of one layer are summed and divided by the learning rate (Zhou et al. 2023
    and their code). A model just trained on many examples of c has less left to learn from c.
    The difference is therefore large for classes of which a client holds many examples.

    The examples are held out from all virtual clients, as real clients have not trained on them
    either. Every model gets them in the same order.

    Each class of each client and round costs training on `samples * epochs` examples.

    Args:
        layer: "last", or the name of the module that is measured, such as "features.6".
        samples: at most this many held-out examples per class.
        epochs: epochs of training.
        batch: examples per step.
        rate: learning rate of Adam.

    """

    layer: str = "last"
    samples: Positive = 128
    epochs: Positive = 5
    batch: Positive = 32
    rate: Rate = 1e-3

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients classes"]:
        """Return the differences of each client.

        Raises:
            PlanError: if the model has no layer of that name.

        """
        names = _parameter_names(context, self.layer)
        before = self._sensitivity(context, context.broadcast, names)
        return torch.stack(
            [
                before
                - self._sensitivity(context, apply_update(context.broadcast, delta), names)
                for delta in deltas
            ]
        )

    def _sensitivity(
        self, scene: ProbeContext, weights: Weights, names: Sequence[str]
    ) -> Float[Tensor, " classes"]:
        labels = scene.held_out.labels
        rows = [(labels == label).nonzero().flatten() for label in range(scene.classes)]
        # The name seeds the batches. It has no label, so permuting labels changes no result.
        members = [ClientTask(f"{int(own[0])}", own[: self.samples]) for own in rows]
        trained = train_cohort(
            scene.build_model,
            weights,
            scene.held_out,
            members,
            self._recipe(),
            seed=scene.seed.child("sensitivity"),
            round=scene.round,
            chunk=CHUNK,
            workers=1,
            device=scene.device,
        )
        sums = [
            torch.stack([result.delta[name].abs().sum() for name in names]).sum()
            for result in trained
        ]
        return torch.stack(sums).float() / self.rate

    def _recipe(self) -> Recipe:
        return Recipe(self.rate, self.epochs, self.batch, optimizer="adam")


def _parameter_names(scene: ProbeContext, layer: str) -> list[str]:
    model = fresh_model(scene.build_model, Seed(0))
    if layer == "last":
        last = find_last_layer(model)
        return [last.weight, *([] if last.bias is None else [last.bias])]
    names = [name for name in trainable_parameters(model) if name.startswith(f"{layer}.")]
    if not names:
        known = sorted({name.rpartition(".")[0] for name in trainable_parameters(model)})
        raise PlanError(
            f"the model has no layer {layer!r} with parameters: choose 'last' or one of "
            f"{', '.join(known)}"
        )
    return names
