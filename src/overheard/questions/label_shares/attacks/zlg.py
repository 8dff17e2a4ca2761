"""Label shares from the last layer's row sums and the model's mean output."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, Weights, apply_update
from overheard.core.needs import AUXILIARY, BROADCASTS, CROSS_ENTROPY, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.custom_networks.single_output import weight_by_class
from overheard.learning.features import features_of_models
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import LastLayer, find_last_layer
from overheard.learning.mean_gradient import mean_gradient
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares

MOST_POINTS = 10**5
"""The most steps at which outputs are interpolated; a client may report any number."""


@final
@dataclass(frozen=True, slots=True)
class Zlg(Attack[LabelShares]):
    """Solves  n_c = K p_c - K DW_c / (O s)  for the label counts n, from the gradient's rows.

    Row c of the gradient of the last layer's weight sums to (1 / K) sum_i (p_ic - y_ic) o_i,
    where p_i is the softmax of example i and o_i the sum of its features. If every o_i is close
    to their mean O, this is O (p_c - n_c / K). DW_c is the sum over row c of all gradients of
    the round, -delta / rate; s is the number of local steps and K of examples. p and O are
    means over the attacker's inputs. Rounds are averaged.

    Under federated averaging, p and O change with each step. As in Dimitrov et al., they are
    interpolated linearly from the broadcast model (first step) to the client's (after the
    last), and the counts of all s steps are averaged. If s is above `MOST_POINTS`, those of as
    many evenly spaced steps are.

    The estimate is misleading if the feature sums differ much between classes or are not
    positive, or if the optimizer is not plain SGD. Differs from the papers: counts are not
    rounded, as shares are claimed; p and O come from auxiliary examples unless `inputs` is
    "noise".

    Args:
        interpolate: whether p and O change with the local steps or stay at the broadcast.
        inputs: inputs on which p and O are measured: the auxiliary examples or, as published,
            noise of their shape (standard normal; for texts, the same words shuffled).
        assumed_examples: value of K if the target's size is hidden; it affects only s.

    """

    interpolate: bool = True
    inputs: Literal["auxiliary", "noise"] = "auxiliary"
    assumed_examples: Positive = 100

    name: ClassVar[str] = "zlg"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset(
        {
            UPDATES,
            BROADCASTS,
            AUXILIARY,
            MODEL,
            RECIPE,
            CROSS_ENTROPY,
        }
    )
    source: ClassVar[str] = (
        "Geng et al. 2021 (Towards General Deep Leakage in Federated Learning, arXiv "
        "2110.09074), label restoration; over local steps: Dimitrov et al. 2022 (Data Leakage "
        "in Federated Averaging, TMLR), label reconstruction, and their code"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over its observed rounds."""
        assert knowledge.auxiliary is not None
        assert knowledge.build_model is not None
        layer = find_last_layer(model_structure(knowledge.build_model), knowledge.classes)
        inputs = knowledge.auxiliary.inputs
        if self.inputs == "noise":
            inputs = noise_like(inputs, seed.child("noise"))
        broadcasts = view.broadcasts()
        outputs = _mean_outputs(broadcasts.values(), inputs, layer, knowledge)
        at_start = dict(zip(broadcasts, outputs, strict=True))
        claims = {}
        for target in targets:
            observed = [
                (number, update)
                for number, update in sorted(view.updates(target).items())
                if number in broadcasts
            ]
            local = (
                apply_update(broadcasts[number], update.delta) for number, update in observed
            )
            at_end = (
                _mean_outputs(local, inputs, layer, knowledge)
                if self.interpolate
                else (at_start[number] for number, _ in observed)
            )
            rounds = [
                self._estimate_shares(update, at_start[number], end, layer, knowledge)
                for (number, update), end in zip(observed, at_end, strict=True)
            ]
            claims[target] = LabelShares(
                normalize_to_shares(torch.stack(rounds).mean(0)).float()
            )
        return claims

    def _estimate_shares(
        self,
        update: Update,
        start: "MeanOutput",
        end: "MeanOutput",
        layer: LastLayer,
        knowledge: Knowledge,
    ) -> Float[Tensor, " classes"]:
        """Estimate the shares of one client in one round."""
        assert knowledge.recipe is not None
        steps = knowledge.recipe.steps(update.examples or self.assumed_examples)
        gradient = mean_gradient(update.delta, layer, knowledge.recipe.rate * steps)
        if gradient is None:
            return normalize_to_shares(torch.zeros(knowledge.classes, dtype=torch.float64))
        points = min(steps, MOST_POINTS)
        progress = torch.arange(points, dtype=torch.float64)[:, None] / points  # (steps, 1)
        probabilities = (1 - progress) * start.probabilities + progress * end.probabilities
        sums = (1 - progress) * start.feature_sum + progress * end.feature_sum  # (steps, 1)
        # If all features are 0, the rows do not change and carry no information on labels.
        changes = torch.where(sums == 0, 0.0, gradient.weight.sum(1) / sums)
        return normalize_to_shares(
            torch.nan_to_num((probabilities - changes).mean(0), 0.0, 0.0, 0.0)
        )


@final
@dataclass(frozen=True, slots=True)
class MeanOutput:
    """A model's mean output and mean feature sum.

    Args:
        probabilities: mean softmax output (p).
        feature_sum: mean sum of an example's features (O).

    """

    probabilities: Float[Tensor, " classes"]
    feature_sum: float


def _mean_outputs(
    cohort: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    layer: LastLayer,
    knowledge: Knowledge,
) -> Iterator[MeanOutput]:
    assert knowledge.build_model is not None
    models, copies = tee(cohort)
    cohort_features = features_of_models(knowledge.build_model, models, inputs)
    for weights, features in zip(copies, cohort_features, strict=True):
        logits = features.double() @ weight_by_class(weights[layer.weight]).double().T
        if layer.bias is not None:
            logits = logits + weight_by_class(weights[layer.bias]).double()
        yield MeanOutput(logits.softmax(1).mean(0), float(features.double().sum(1).mean()))


def noise_like(
    inputs: Shaped[Tensor, "examples ..."], seed: Seed
) -> Shaped[Tensor, "examples ..."]:
    """Draw noise inputs of the same shape: normal numbers, or the same words shuffled."""
    generator = seed.generator()
    if inputs.is_floating_point():
        noise = torch.randn(inputs.shape, generator=generator, dtype=inputs.dtype)
        return noise.to(inputs.device)
    order = torch.randperm(inputs.numel(), generator=generator).to(inputs.device)
    return inputs.flatten()[order].view_as(inputs)
