"""Membership by how far a record's input is from the row space of a layer's update: ProjRes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Gt, Lt
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Weights
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.initialization import fresh_model
from overheard.learning.sent_tensors import load_sent_tensors, trainable_parameters
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_logits import rounds_to_read

SMALLEST_RESIDUAL = 1e-9
"""Residuals below this count as this, so that they have a finite logarithm."""

RECORDS_PER_PASS = 256
"""Records that the model reads at once, which bounds the memory of activations."""


@final
@dataclass(frozen=True, slots=True)
class ProjectionResidual(Attack[Membership]):
    """How little of a record's input to a linear layer is outside of that layer's update.

    The gradient of a linear layer's matrix is a sum of outer products g h' over the training
    examples, with h the layer's input. So the rows of the update lie in the span of the inputs.
    With V the right singular vectors of the update whose singular values are above `tolerance`
    times the largest, the residual of a record is ||h - V V' h|| / ||h||. The score is minus
    its logarithm, averaged over positions and rounds, minus the median over all candidate
    records. The layer is the first linear one that is trained, for an adapter the matrix that
    reads the inputs. Inputs are those at the broadcast.

    There are no shadow models, no auxiliary examples and no labels. It finds all members where
    they are fewer than the layer's outputs (an adapter's rank) and than its inputs, which stay
    as they are: records, or the outputs of layers that hardly change. Beyond that it fades.
    Where the update has full rank, all residuals are 0, and nothing is found. Steps of SGD,
    several epochs and momentum keep the span. Adam scales each weight by itself and noise fills
    all directions, so both break it.

    Args:
        tolerance: singular values below this share of the largest count as 0.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    tolerance: Annotated[float, Gt(0), Lt(1)] = 1e-2
    most_rounds: Positive = 5

    name: ClassVar[str] = "proj_res"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard, after Deng et al. 2026 (Toward Efficient Membership Inference Attacks "
        "against Federated Large Language Models: A Projection Residual Approach, S&P, arXiv "
        "2604.21197), whose abstract states the residual"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim how small the residual of each record is.

        Raises:
            NeedsError: if no linear layer is trained.

        """
        rounds_of = rounds_to_read(view, targets, self.most_rounds)
        inputs = {
            number: first_layer_inputs(view.broadcasts()[number], knowledge)
            for number in sorted({number for rounds in rounds_of.values() for number in rounds})
        }
        claims = {}
        for target, rounds in rounds_of.items():
            updates = view.updates(target)
            closeness = torch.stack(
                [
                    -log_residuals(
                        inputs[number].values,
                        updates[number].delta[inputs[number].matrix],
                        self.tolerance,
                    )
                    for number in rounds
                ]
            ).mean(0)
            claims[target] = Membership((closeness - closeness.median()).float())
        return claims


@final
@dataclass(frozen=True, slots=True, eq=False)
class LayerInputs:
    """The inputs of all records to a linear layer.

    Args:
        matrix: the name of the trained matrix that reads them.
        values: one row for each position of each record.

    """

    matrix: str
    values: Float[Tensor, "records positions inputs"]


def first_layer_inputs(weights: Weights, knowledge: Knowledge) -> LayerInputs:
    """Return the candidate records' inputs to the first linear layer that is trained.

    Raises:
        NeedsError: if no linear layer that reads the records is trained.

    """
    assert knowledge.build_model is not None
    records = candidate_records(knowledge).to(knowledge.compute.own_device)
    model = fresh_model(knowledge.build_model, Seed(0)).to(records.inputs.device).eval()
    model.to(dtype=next(iter(weights.values())).dtype)
    load_sent_tensors(model, weights)
    read: list[tuple[str, Tensor]] = []
    matrices = _trained_matrices(model)
    for name, module in model.named_modules():
        if name in matrices:
            module.register_forward_pre_hook(
                lambda _, inputs, matrix=matrices[name]: read.append((matrix, inputs[0]))
            )
    parts, matrix = [], ""
    for rows in torch.split(torch.arange(len(records)), RECORDS_PER_PASS):
        read.clear()
        with torch.no_grad():
            model(records.inputs[rows.to(records.inputs.device)])
        if not read:
            raise NeedsError(
                "proj_res reads the update of a linear layer, but the model has no nn.Linear "
                "that is trained: choose another attack"
            )
        matrix, values = read[0]
        parts.append(values.reshape(len(rows), -1, values.shape[-1]).double().cpu())
    return LayerInputs(matrix, torch.cat(parts))


def _trained_matrices(model: nn.Module) -> dict[str, str]:
    """Return, by the name of each linear layer, the trained matrix that reads its inputs."""
    trained = trainable_parameters(model)
    found = dict[str, str]()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            for own, parameter in module.named_parameters(prefix=name, recurse=False):
                if own in trained and tuple(parameter.shape[1:]) == (module.in_features,):
                    found.setdefault(name, own)
    return found


def log_residuals(
    inputs: Float[Tensor, "records positions inputs"],
    update: Float[Tensor, "outputs inputs"],
    tolerance: float,
) -> Float[Tensor, " records"]:
    """Return the log of ||h - V V' h|| / ||h|| of each record, averaged over positions.

    Args:
        inputs: the inputs h to the layer.
        update: the layer's update, whose right singular vectors are V.
        tolerance: singular values below this share of the largest count as 0.

    """
    _, sizes, directions = torch.linalg.svd(update.double().cpu(), full_matrices=False)
    span = directions[sizes > tolerance * sizes.max()]  # (rank, inputs)
    unit = torch.nn.functional.normalize(inputs, dim=-1)
    rest = unit - unit @ span.T @ span
    residuals: Tensor = rest.norm(dim=-1).clamp(min=SMALLEST_RESIDUAL)
    return residuals.log().mean(-1)
