"""The matched filter of a record's gradient in an update, whitened layer by layer."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.learning.layer_gradients import Gradients, TableGradients

RIDGE = 0.03
"""Added to the eigenvalues of each factor, relative to their mean."""

MIN_SIGNAL_SHARE = 1e-3
"""Least share of an update's square that is not noise."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """The second moments of the gradients of records at one layer, as a Kronecker product.

    With one position, E[x x'] of inputs x and E[g g'] of slopes g (Martens and Grosse 2015,
    section 3). Otherwise E[J' J] and E[J J'] of each record's gradient matrix J, since the
    update sums over positions, too. Of J' J of a table only the diagonal is kept.

    Args:
        inputs: the moments of inputs; of a table, of each row.
        outputs: the moments of slopes.

    """

    inputs: Float[Tensor, "inputs inputs"] | Float[Tensor, " inputs"]
    outputs: Float[Tensor, "outputs outputs"]

    @classmethod
    def of_records(cls, parts: Iterable[Gradients]) -> "Factors":
        """Return the factors of all records of these parts."""
        inputs, outputs, count = None, None, 0
        for part in parts:
            more = _moments(part)
            inputs = more[0] if inputs is None else inputs + more[0]
            outputs = more[1] if outputs is None else outputs + more[1]
            count += len(part.slopes)
        assert inputs is not None
        assert outputs is not None
        return cls(inputs / count, outputs / count)


def _moments(gradients: Gradients) -> tuple[Tensor, Tensor]:
    """Return the sums over records of the moments of inputs and slopes."""
    if isinstance(gradients, TableGradients):
        slopes = gradients.slopes.flatten(0, 1)  # (records x positions, outputs)
        of_rows = slopes.new_zeros(gradients.size)
        of_rows.index_add_(0, gradients.rows.flatten(), slopes.square().sum(1))
        return of_rows, slopes.T @ slopes
    if gradients.inputs.shape[1] == 1:
        inputs, slopes = gradients.inputs.squeeze(1), gradients.slopes.squeeze(1)
        return inputs.T @ inputs, slopes.T @ slopes
    matrices = gradients.matrices()
    rows, columns = matrices.flatten(0, 1), matrices.transpose(1, 2).flatten(0, 1)
    return rows.T @ rows, columns.T @ columns


@final
@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """The axes in which the entries of a layer's update are uncorrelated, and their variances.

    Args:
        inputs: the axes of inputs, as columns; None = the rows of a table themselves.
        outputs: the axes of outputs, as columns.
        variances: of each entry, up to a common factor.

    """

    inputs: Float[Tensor, "inputs axes"] | None
    outputs: Float[Tensor, "outputs axes2"]
    variances: Float[Tensor, "axes2 axes"]

    @classmethod
    def of_factors(cls, factors: Factors, ridge: float = RIDGE) -> "Whitening":
        """Return the axes and variances of these factors.

        Args:
            factors: the second moments.
            ridge: added to the eigenvalues of each factor, relative to their mean.

        """
        of_inputs, inputs = _eigen(factors.inputs, ridge)
        of_outputs, outputs = _eigen(factors.outputs, ridge)
        assert outputs is not None, "only inputs have a diagonal"
        return cls(inputs, outputs, torch.outer(of_outputs, of_inputs))

    def rotate(self, matrices: Float[Tensor, "*any outputs inputs"]) -> Tensor:
        """Return matrices in these axes."""
        by_output = self.outputs.T @ matrices
        return by_output if self.inputs is None else by_output @ self.inputs

    def entry_variances(
        self, update: Float[Tensor, "outputs inputs"], noise: float
    ) -> Float[Tensor, "axes2 axes"]:
        """Return the variances of an update's entries in these axes, by its size.

        Args:
            update: of the layer.
            noise: the part of the variance that is the same for all entries.

        """
        square = float(update.double().square().sum())
        signal = max(square - noise * update.numel(), MIN_SIGNAL_SHARE * square)
        tiny = torch.finfo(update.dtype).tiny ** 0.5
        found: Tensor = noise + signal / self.variances.sum() * self.variances
        return found.clamp(min=tiny)


def _eigen(
    moments: Float[Tensor, "sides sides"] | Float[Tensor, " sides"], ridge: float
) -> tuple[Float[Tensor, " sides"], Float[Tensor, "sides sides"] | None]:
    """Return the eigenvalues with a ridge, and the eigenvectors, computed in float64.

    Of a diagonal, these are its numbers, and no vectors.
    """
    values, vectors = moments.double(), None
    if moments.dim() == 2:
        values, vectors = torch.linalg.eigh(values)
    values = values.clamp(min=0)
    mean = values.mean().clamp(min=torch.finfo(moments.dtype).tiny ** 0.5)
    axes = None if vectors is None else vectors.to(moments.dtype)
    return (values + ridge * mean).to(moments.dtype), axes


def fit_and_strength(
    gradients: Gradients,
    whitening: Whitening,
    updates: Float[Tensor, "updates outputs inputs"],
    noise: float = 0.0,
) -> tuple[Float[Tensor, "updates records"], Float[Tensor, "updates records"]]:
    """Return how far each update points along minus each record's gradient, and the strength.

    For a gradient J, an update U and its covariance C, the *fit* N is - <J, C^-1 U>, and the
    *strength* S is <J, C^-1 J>. Under U = -s J + a normal rest with covariance C, the
    log-likelihood ratio of s is s N - s^2 S / 2: a matched filter. N / sqrt(S) has variance 1
    without the record.

    Args:
        gradients: of the records.
        whitening: gives C.
        updates: of the layer.
        noise: the part of the variance of each entry that is noise.

    """
    rotated = whitening.rotate(updates)
    variances = torch.stack([whitening.entry_variances(one, noise) for one in updates])
    directions = rotated / variances
    if isinstance(gradients, TableGradients):
        values = gradients.slopes @ whitening.outputs  # (records, positions, axes2)
        fits = [-(one.T[gradients.rows] * values).sum((1, 2)) for one in directions]
        squares = values.square()
        strengths = [((1 / one).T[gradients.rows] * squares).sum((1, 2)) for one in variances]
        return torch.stack(fits), torch.stack(strengths)
    if gradients.inputs.shape[1] == 1 and whitening.inputs is not None:
        inputs = gradients.inputs.squeeze(1) @ whitening.inputs  # (records, axes)
        slopes = gradients.slopes.squeeze(1) @ whitening.outputs  # (records, axes2)
        fit = -((slopes @ directions) * inputs).sum(-1)
        strength = ((slopes.square() @ (1 / variances)) * inputs.square()).sum(-1)
        return fit, strength
    matrices = whitening.rotate(gradients.matrices()).flatten(1)  # (records, entries)
    fit = -directions.flatten(1) @ matrices.T
    return fit, (1 / variances).flatten(1) @ matrices.square().T
