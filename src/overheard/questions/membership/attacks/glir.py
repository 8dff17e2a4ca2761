"""Membership by the likelihood of an update, given a record's gradient: GLiR."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Update, Weights
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.example_gradients import example_gradients
from overheard.learning.initialization import model_structure
from overheard.learning.sent_tensors import trainable_parameters
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_logits import rounds_to_read
from overheard.questions.membership.estimators.shadow_count import shadow_size

MAX_GRADIENT_BYTES = 2**27
"""Largest size of the whole gradients of some records that are in memory at once."""

MAX_RECORDS = 256
"""The most records whose gradients are computed at once, which bounds their activations."""


@final
@dataclass(frozen=True, slots=True)
class Glir(Attack[Membership]):
    """How unlikely the update is for a record that the client did not train on.

    One step of n examples sends their mean gradient u. With gradients normal around m with
    covariance S, and the gradient g of a record that is not among the examples,

        T = (n - 1) (u - g)' S^-1 (u - g)

    has about a noncentral chi-squared distribution of d degrees of freedom and noncentrality
    n K, K = (g - m)' S^-1 (g - m); for a member it is smaller. The published score is the log
    of the probability of a value below T, summed over rounds; members have the lowest sums.
    The score here is the logarithm of minus the sum, minus its median over all candidate
    records: the same order, without ties at the limits of numbers.

    It differs from the authors' code, and federations differ from their setting:

    - Their code hands S to PyTorch's cholesky_inverse, which expects the factor of S. Here S,
      from the auxiliary examples and the candidate records, is inverted with a ridge, and d is
      the sum of s / (s + ridge) over its eigenvalues s.
    - A round of several steps counts as one step of all of the client's examples: u is minus
      the update, divided by the rate, the number of steps and 1 / (1 - momentum).
    - It reads the last layers, as the authors do; of a small model these are all. Then it sees
      most, above all where the client's records are all candidates.

    Args:
        most_parameters: trained tensors are read from the last one on, while they have no more
            parameters than this together; the last two in any case.
        ridge: added to the eigenvalues of S, as a share of their mean.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    most_parameters: Positive = 20_000
    ridge: Annotated[float, Gt(0)] = 0.3
    most_rounds: Positive = 5

    name: ClassVar[str] = "glir"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Leemann, Pawelczyk and Kasneci 2023 (Gaussian Membership Inference Privacy, NeurIPS, "
        "arXiv 2306.07273), GLiR"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return that gradients depend on the loss, and their mean on the steps."""
        return frozenset({"loss", "steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim how unlikely each target's updates are without each record.

        Raises:
            NeedsError: if clients train with another optimizer than SGD.

        """
        assert knowledge.build_model is not None
        assert knowledge.recipe is not None
        if knowledge.recipe.optimizer != "sgd":
            raise NeedsError(
                "glir reads an update as a sum of gradients, so it needs clients that train "
                f"with sgd; the recipe has {knowledge.recipe.optimizer}: choose another attack"
            )
        names = last_parameters(
            trainable_parameters(model_structure(knowledge.build_model)), self.most_parameters
        )
        rounds_of = rounds_to_read(view, targets, self.most_rounds)
        by_target: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for number in sorted({number for rounds in rounds_of.values() for number in rounds}):
            start = view.broadcasts()[number]
            gradients = GradientSample(
                _gradients_of(_all_examples(knowledge), start, names, knowledge),
                len(candidate_records(knowledge)),
                self.ridge,
            )
            for target in (one for one in targets if number in rounds_of[one]):
                update = view.updates(target)[number]
                clients = view.cohort_sizes().get(number, 1) if target == COHORT else 1
                # A mean over clients is one of as many steps as each of them makes.
                size = (update.examples or 0) // clients
                size = size or shadow_size(view, knowledge, include_candidates=True)
                mean = mean_gradient(update, names, knowledge.recipe, size)
                by_target[target].append(gradients.log_surprise(mean, size * clients))
        sums = {
            target: torch.stack(rounds).logsumexp(0) for target, rounds in by_target.items()
        }
        return {
            target: Membership((score - score.median()).float())
            for target, score in sums.items()
        }


def last_parameters(parameters: Mapping[str, Tensor], most: int) -> tuple[str, ...]:
    """Return the names of the last tensors that have at most `most` parameters together.

    The last two, such as the weights and biases of a layer, are returned in any case.
    """
    selected, total = list[str](), 0
    for name in reversed(list(parameters)):
        total += parameters[name].numel()
        if total > most and len(selected) >= 2:
            break
        selected.append(name)
    return tuple(selected)


def mean_gradient(
    update: Update, names: Sequence[str], recipe: Recipe, examples: int
) -> Float[Tensor, " params"]:
    """Return the mean gradient whose SGD steps, all at the broadcast, give the update."""
    steps = recipe.steps(examples)
    scale = recipe.rate * steps / (1 - recipe.momentum)
    return -torch.cat([update.delta[name].flatten() for name in names]).double().cpu() / scale


def _all_examples(knowledge: Knowledge) -> Examples:
    """Return the auxiliary examples and then the candidate records."""
    assert knowledge.auxiliary is not None
    return concatenate_examples((knowledge.auxiliary, candidate_records(knowledge)))


def _gradients_of(
    examples: Examples, weights: Weights, names: Sequence[str], knowledge: Knowledge
) -> Float[Tensor, "examples params"]:
    """Return each example's gradient of the named tensors."""
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    device = knowledge.compute.own_device
    start = {name: tensor.to(device) for name, tensor in weights.items()}
    sizes = [start[name].numel() for name in sorted(start)]
    places = dict(zip(sorted(start), torch.split(torch.arange(sum(sizes)), sizes), strict=True))
    columns = torch.cat([places[name] for name in names]).to(device)
    size = max(1, MAX_GRADIENT_BYTES // (4 * sum(sizes)))
    parts = []
    for rows in torch.split(torch.arange(len(examples)), min(size, MAX_RECORDS)):
        part = examples.take(rows).to(device)
        gradients = example_gradients(knowledge.build_model, start, part, knowledge.recipe)
        parts.append(gradients[:, columns].cpu())
    return torch.cat(parts)


@final
class GradientSample:
    """Gradients of a sample of examples, of which the last are the candidate records.

    Args:
        gradients: one row for each example.
        records: how many of the last rows are candidate records.
        ridge: added to the eigenvalues of their covariance S, as a share of the mean one.

    """

    def __init__(
        self, gradients: Float[Tensor, "examples params"], records: int, ridge: float
    ) -> None:
        self._mean = gradients.mean(0)
        self._centred = gradients - self._mean
        self._records = records
        count, parameters = gradients.shape
        gram = (self._centred @ self._centred.T).double()
        self._ridge = max(ridge * float(gram.trace()) / count / parameters, 1e-300)
        eigenvalues, vectors = torch.linalg.eigh(gram)
        self._vectors = vectors
        self._inverse = 1 / (eigenvalues.clamp(min=0) + count * self._ridge)
        self.degrees = float((eigenvalues.clamp(min=0) * self._inverse).sum())
        """The degrees of freedom d that the ridge leaves."""
        self._record_products = vectors.T @ gram[:, count - records :]
        self._record_lengths = self._length(
            gram.diagonal()[count - records :], self._record_products
        )

    def _length(
        self, squares: Float[Tensor, " rows"], products: Float[Tensor, "examples rows"]
    ) -> Float[Tensor, " rows"]:
        """Return a' (S + ridge)^-1 a by the Woodbury identity.

        Args:
            squares: a'a of each row.
            products: those of each row with the centred gradients, in the eigenbasis.

        """
        inside = (products.square() * self._inverse.unsqueeze(1)).sum(0)
        length: Tensor = (squares - inside).clamp(min=0) / self._ridge
        return length

    def statistics(
        self, mean: Float[Tensor, " params"], examples: int
    ) -> tuple[Float[Tensor, " records"], Float[Tensor, " records"]]:
        """Return K and T of each record.

        Args:
            mean: the mean gradient u of an update.
            examples: the number n of examples in it.

        """
        gap = mean.to(self._mean) - self._mean
        records = self._centred[len(self._centred) - self._records :]
        products = (self._vectors.T @ (self._centred @ gap).double()).unsqueeze(1)
        differences = (records - gap).square().sum(1).double()
        length = self._length(differences, self._record_products - products)
        return self._record_lengths, (examples - 1) * length

    def log_surprise(
        self, mean: Float[Tensor, " params"], examples: int
    ) -> Float[Tensor, " records"]:
        """Return log(-log P(noncentral chi-squared of d and n K < T)) of each record."""
        k, t = self.statistics(mean, examples)
        return torch.from_numpy(
            log_minus_log_below(t.numpy(), self.degrees, examples * k.numpy())
        )


def log_minus_log_below(
    values: NDArray[np.float64], degrees: float, noncentrality: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return log(-log P(x < value)) of a noncentral chi-squared x.

    Where a probability is too small for a number, Sankaran's normal approximation (1959) takes
    its place.
    """
    from scipy.special import log_ndtr
    from scipy.stats import ncx2

    standard = _sankaran(values, degrees, noncentrality)
    with np.errstate(all="ignore"):
        below = ncx2.logcdf(values, degrees, noncentrality)
        above = ncx2.logsf(values, degrees, noncentrality)
    below = np.where(np.isfinite(below), below, log_ndtr(standard))
    above = np.where(np.isfinite(above), above, log_ndtr(-standard))
    # log(-log(1 - q)) = log(-log1p(-q)), which is log q for small q.
    upper = np.where(above < -30, above, np.log(-np.log1p(-np.exp(np.clip(above, -30, -1e-9)))))
    lower = np.log(-np.minimum(below, -1e-300))
    return np.where(below < math.log(0.5), lower, upper)


def _sankaran(
    values: NDArray[np.float64], degrees: float, noncentrality: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the value as one of a standard normal distribution."""
    mean, double = degrees + noncentrality, degrees + 2 * noncentrality
    power = 1 - 2 * mean * (degrees + 3 * noncentrality) / (3 * double**2)
    spread = double / mean**2
    slope = (power - 1) * (1 - 3 * power)
    centre = 1 + power * spread * (power - 1 - (2 - power) * slope * spread / 2)
    deviation = power * np.sqrt(2 * spread) * (1 + slope * spread / 2)
    standard: NDArray[np.float64] = ((values / mean) ** power - centre) / deviation
    return standard
