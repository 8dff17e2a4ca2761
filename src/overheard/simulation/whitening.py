"""The matched filter of a record's gradient in an update, whitened layer by layer."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from overheard.learning.layer_gradients import Gradients, LayerGradients, TableGradients

RIDGE = 0.003
"""Added to the variances of entries, relative to their mean. On tuning seeds .0003 and .03 are
.00 to .01 of AUC worse."""

MOST_AXES = 2048
"""The most axes of inputs. On CIFAR-10, whose images have 3,072 numbers, 1,500 serve as well
as all, and 500 are .035 of AUC worse."""

PRECISE_SIDES = 1024
"""Matrices with more rows are decomposed in float32, in a third of the time: on CIFAR-10 the
AUC is the same to .001."""

ROWS_AT_ONCE = 2**16
"""Rows that are in memory in float64 at once."""

ENTRIES_AT_ONCE = 2**18
"""Entries of gradient matrices of which a copy is in memory at once."""

WIDE_SIDES = 4096
"""Where there are more rows and more sides than this, `WIDE_ROWS` of the rows give the axes."""

WIDE_ROWS = 2048
"""A linear layer of 25,088 inputs and 64 outputs, with 2,500 records and three points, takes
13 s of one core and 1.4 GB for each sender."""

SMALLEST_EIGENVALUE = 1e-7
"""Axes with eigenvalues below this share of the largest are rounding errors, and left out."""

NOISE_SHARES = tuple(10.0 ** (power / 2) for power in range(-8, 7))
"""The noise that is tried, relative to the mean of the variances that gradients explain."""

RELATIVE_SPREAD = 0.7
"""Deviation of the weight of a member's gradient, relative to its mean: a record acts when its
batch comes, and the model has moved by then. On tuning seeds 0 is .02 to .4 of AUC worse, and
.35 the same."""

MEMBER_SHARE = 0.1
"""Share of records that count as members while the mean weight is fitted."""

TYPICAL_SCORES = tuple(2.0**power for power in range(-2, 6))
"""The mean weights that are tried, as the mean standardised fit of a member with the median
strength."""

MEDIAN_DEVIATION = 0.6745
"""Median distance of a standard normal number from 0."""

LOW_SHARE, LOW_DEVIATION = 0.05, 1.645
"""The share of standard normal numbers that is below minus this."""

SMALLEST_SPREAD = 1e-4
"""Scores that spread less, relative to their median distance from 0, differ by rounding. So do
those of a layer of one number, as a learned slope."""

BANDS = 8
"""Bands of a layer's inputs. On the tuning seeds 900 to 902, with `combine_parts`, they add .02
to .05 of AUC with `conv_net` on MNIST, and .00 to .02 elsewhere. Bands of single entries, or of
inputs and outputs, are as good, and take twice the time."""

SMALLEST_BAND = 30
"""A band has about as many entries, or more."""

CORRELATION_RIDGE = 0.1
"""Added to the variances of scores when they are weighted, and so is the number of parts over
that of records. On tuning seeds .05 to 1 are the same to .005."""

LARGEST_SCORE = 3.0
"""Scores beyond are hardly those of non-members, and count as this in correlations."""

OUTLIER_SHARE, OUTLIER_FACTOR = 0.99, 10.0
"""Rows this many times as long as such a share of all rows but 0 are shortened to that. One
wrong number in one record would else hide all others: variances are means of squares."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """Orthogonal axes of the inputs and outputs of a layer, as columns.

    In the eigenvectors of the second moments of gradients, the entries of an update are about
    uncorrelated: its covariance is about a Kronecker product (Martens and Grosse 2015,
    section 3). The inputs of a table are its rows, and None stands for their own axes.
    """

    inputs: Float[Tensor, "inputs axes"] | None
    outputs: Float[Tensor, "outputs axes2"]

    def rotate(self, matrix: Float[Tensor, "*any outputs inputs"]) -> Tensor:
        """Return matrices in these axes."""
        by_output = self.outputs.T @ matrix
        return by_output if self.inputs is None else by_output @ self.inputs

    def rotate_back(self, matrix: Float[Tensor, "axes2 axes"]) -> Tensor:
        """Return a matrix in these axes as it was; what is outside of the axes is 0."""
        by_input = self.outputs @ matrix
        return by_input if self.inputs is None else by_input @ self.inputs.T


class RecordGradients(ABC):
    """The gradient of each record at one layer: its mean over points on the way of a client."""

    @abstractmethod
    def without_outliers(self) -> "RecordGradients":
        """Return the gradients, those of outliers shortened: see `shorten_outliers`."""

    @abstractmethod
    def axes(self) -> Axes:
        """Return the eigenvectors of the second moments of inputs and outputs."""

    @abstractmethod
    def rotated(self, axes: Axes) -> "RecordGradients":
        """Return the gradients in these axes."""

    @abstractmethod
    def mean(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean gradient."""

    @abstractmethod
    def mean_squares(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean square of each entry."""

    @abstractmethod
    def weighted_sum(
        self, weights: Float[Tensor, " records"]
    ) -> Float[Tensor, "outputs inputs"]:
        """Return the weighted sum of the gradients."""

    @abstractmethod
    def products(
        self, matrix: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the inner product of each gradient with a matrix, in each band of inputs.

        Args:
            matrix: in the axes of the gradients.
            bands: 1 where an input is in a band; an input may be in none.

        """

    @abstractmethod
    def squares(
        self, weights: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the weighted sum of each gradient's squared entries, in each band."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class DenseGradients(RecordGradients):
    """Products of slopes and inputs, at one point or several; no matrix a record is computed.

    Args:
        inputs: at each point.
        slopes: at each point.

    """

    inputs: tuple[Float[Tensor, "records inputs"], ...]
    slopes: tuple[Float[Tensor, "records outputs"], ...]

    @classmethod
    def of_points(
        cls,
        inputs: Sequence[Float[Tensor, "records inputs"]],
        slopes: Sequence[Float[Tensor, "records outputs"]],
    ) -> "DenseGradients":
        """Return the gradients; if inputs are the same at all points, slopes are averaged."""
        if all(one.equal(inputs[0]) for one in inputs[1:]):
            return cls((inputs[0],), (torch.stack(tuple(slopes)).mean(0),))
        return cls(tuple(inputs), tuple(slopes))

    def without_outliers(self) -> "DenseGradients":
        """Return the products of inputs and slopes that are shortened by themselves."""
        return DenseGradients(
            tuple(map(shorten_outliers, self.inputs)), tuple(map(shorten_outliers, self.slopes))
        )

    def axes(self) -> Axes:
        """Return the eigenvectors of E[x x'] and E[g g'] over records and points."""
        return Axes(principal_axes(*self.inputs), principal_axes(*self.slopes))

    def rotated(self, axes: Axes) -> "DenseGradients":
        """Return the gradients in these axes."""
        assert axes.inputs is not None, "only a table has none"
        return self.with_inputs(tuple(one @ axes.inputs for one in self.inputs), axes)

    def with_inputs(self, inputs: tuple[Tensor, ...], axes: Axes) -> "DenseGradients":
        """Return the gradients in these axes, in which the inputs are known."""
        return DenseGradients(inputs, tuple(one @ axes.outputs for one in self.slopes))

    def matrices(self) -> Float[Tensor, "records outputs inputs"]:
        """Return the gradient of each record."""
        pairs = zip(self.inputs, self.slopes, strict=True)
        return torch.stack([g.unsqueeze(2) * x.unsqueeze(1) for x, g in pairs]).mean(0)

    def mean(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean gradient."""
        pairs = zip(self.inputs, self.slopes, strict=True)
        return torch.stack([g.T @ x for x, g in pairs]).mean(0) / len(self.inputs[0])

    def mean_squares(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean square of each entry, over records and points."""
        pairs = zip(self.inputs, self.slopes, strict=True)
        squares = [g.square().T @ x.square() for x, g in pairs]
        return torch.stack(squares).mean(0) / len(self.inputs[0])

    def weighted_sum(
        self, weights: Float[Tensor, " records"]
    ) -> Float[Tensor, "outputs inputs"]:
        """Return the weighted sum of the gradients."""
        pairs = zip(self.inputs, self.slopes, strict=True)
        return torch.stack([(g * weights[:, None]).T @ x for x, g in pairs]).mean(0)

    def products(
        self, matrix: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the inner product of each gradient with a matrix, in each band of inputs."""
        pairs = zip(self.inputs, self.slopes, strict=True)
        return torch.stack([((g @ matrix) * x) @ bands for x, g in pairs]).mean(0)

    def squares(
        self, weights: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the weighted sum of each gradient's squared entries, in each band."""
        total = self.slopes[0].new_zeros(len(self.slopes[0]), bands.shape[1])
        for place, (x, g) in enumerate(zip(self.inputs, self.slopes, strict=True)):
            for other in range(place, len(self.inputs)):
                both = (g * self.slopes[other]) @ weights
                total += (1 + (other > place)) * ((both * x * self.inputs[other]) @ bands)
        return total / len(self.inputs) ** 2


@final
@dataclass(frozen=True, slots=True, eq=False)
class SummedGradients(RecordGradients):
    """The gradient matrices of records at a layer that sums over positions."""

    matrices: Float[Tensor, "records outputs inputs"]

    def without_outliers(self) -> "SummedGradients":
        """Return the gradients, those of outliers shortened."""
        return SummedGradients(shorten_outliers(self.matrices))

    def axes(self) -> Axes:
        """Return the eigenvectors of E[J' J] and E[J J'] of the gradient matrices J."""
        return Axes(
            principal_axes(self.matrices.flatten(0, 1)),
            principal_axes(self.matrices.transpose(1, 2).flatten(0, 1)),
        )

    def rotated(self, axes: Axes) -> "SummedGradients":
        """Return the gradients in these axes."""
        return SummedGradients(axes.rotate(self.matrices))

    def mean(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean gradient."""
        return self.matrices.mean(0)

    def mean_squares(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean square of each entry."""
        return self.matrices.square().mean(0)

    def weighted_sum(
        self, weights: Float[Tensor, " records"]
    ) -> Float[Tensor, "outputs inputs"]:
        """Return the weighted sum of the gradients."""
        return (weights @ self.matrices.flatten(1)).view(self.matrices.shape[1:])

    def products(
        self, matrix: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the inner product of each gradient with a matrix, in each band of inputs."""
        return torch.cat([(one * matrix).sum(1) @ bands for one in self._few_at_once()])

    def squares(
        self, weights: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the weighted sum of each gradient's squared entries, in each band."""
        parts = self._few_at_once()
        return torch.cat([(one.square() * weights).sum(1) @ bands for one in parts])

    def _few_at_once(self) -> tuple[Tensor, ...]:
        """Return the matrices in parts, of which a copy fits into the processor's cache."""
        return torch.split(self.matrices, max(1, ENTRIES_AT_ONCE // self.matrices[0].numel()))


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowGradients(RecordGradients):
    """The gradients of records at a table, of which each reads few rows, each row once.

    Args:
        size: number of rows of the table.
        rows: that each record reads.
        slopes: gradient at each of them.

    """

    size: int
    rows: Int[Tensor, "records positions"]
    slopes: Float[Tensor, "records positions outputs"]

    def without_outliers(self) -> "RowGradients":
        """Return the gradients, those of outliers shortened."""
        return RowGradients(self.size, self.rows, shorten_outliers(self.slopes))

    def axes(self) -> Axes:
        """Return the eigenvectors of E[J J'] of the gradient matrices J, and the rows."""
        return Axes(None, principal_axes(self.slopes.flatten(0, 1)))

    def rotated(self, axes: Axes) -> "RowGradients":
        """Return the gradients in these axes."""
        return RowGradients(self.size, self.rows, self.slopes @ axes.outputs)

    def mean(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean gradient."""
        return self._mean_of(self.slopes)

    def mean_squares(self) -> Float[Tensor, "outputs inputs"]:
        """Return the mean square of each entry."""
        return self._mean_of(self.slopes.square())

    def weighted_sum(
        self, weights: Float[Tensor, " records"]
    ) -> Float[Tensor, "outputs inputs"]:
        """Return the weighted sum of the gradients."""
        return self._sum_of(self.slopes * weights[:, None, None])

    def products(
        self, matrix: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the inner product of each gradient with a matrix, in each band of rows."""
        return self._by_band((matrix.T[self.rows] * self.slopes).sum(2), bands)

    def squares(
        self, weights: Float[Tensor, "outputs inputs"], bands: Float[Tensor, "inputs bands"]
    ) -> Float[Tensor, "records bands"]:
        """Return the weighted sum of each gradient's squared entries, in each band."""
        return self._by_band((weights.T[self.rows] * self.slopes.square()).sum(2), bands)

    def _by_band(self, values: Float[Tensor, "records positions"], bands: Tensor) -> Tensor:
        return (values.unsqueeze(1) @ bands[self.rows]).squeeze(1)

    def _mean_of(self, values: Float[Tensor, "records positions outputs"]) -> Tensor:
        return self._sum_of(values) / len(values)

    def _sum_of(self, values: Float[Tensor, "records positions outputs"]) -> Tensor:
        total = values.new_zeros(self.size, values.shape[2])
        return total.index_add_(0, self.rows.flatten(), values.flatten(0, 1)).T


def joined(parts: Sequence[RecordGradients]) -> RecordGradients:
    """Return the gradients of all records of these parts, which are of one layer."""
    tables = [one for one in parts if isinstance(one, RowGradients)]
    if tables:
        rows = pad_sequence([row for one in tables for row in one.rows], batch_first=True)
        slopes = pad_sequence([row for one in tables for row in one.slopes], batch_first=True)
        return RowGradients(tables[0].size, rows, slopes)
    dense = [one for one in parts if isinstance(one, DenseGradients)]
    if len(dense) < len(parts):  # texts of one token have one position
        summed = [
            one.matrices() if isinstance(one, DenseGradients) else one.matrices
            for one in parts
            if isinstance(one, (DenseGradients, SummedGradients))
        ]
        return SummedGradients(torch.cat(summed))
    # Inputs that stay the same are kept once, which may be so in some parts alone.
    count = max(len(one.inputs) for one in dense)
    all_inputs = [one.inputs * (count // len(one.inputs)) for one in dense]
    all_slopes = [one.slopes * (count // len(one.slopes)) for one in dense]
    return DenseGradients(
        tuple(torch.cat(points) for points in zip(*all_inputs, strict=True)),
        tuple(torch.cat(points) for points in zip(*all_slopes, strict=True)),
    )


def at_points(points: Sequence[Gradients]) -> RecordGradients:
    """Return the mean over points of the gradients of the same records at one layer."""
    if isinstance(points[0], TableGradients):
        slopes = torch.stack([one.slopes for one in points]).mean(0)
        return RowGradients(points[0].size, points[0].rows, slopes)
    matrices = [one for one in points if isinstance(one, LayerGradients)]
    if matrices[0].inputs.shape[1] > 1:
        return SummedGradients(torch.stack([one.matrices() for one in matrices]).mean(0))
    return DenseGradients.of_points(
        [one.inputs.squeeze(1) for one in matrices], [one.slopes.squeeze(1) for one in matrices]
    )


def shorten_outliers(rows: Float[Tensor, "rows ..."]) -> Float[Tensor, "rows ..."]:
    """Return the rows, of which those far longer than nearly all others are shortened.

    A row whose norm is no number is 0: it says nothing. Rows of 0 are no measure of others: a
    model that fits most records has no gradient at them.
    """
    norms = rows.flatten(1).norm(dim=1)
    is_number = norms.isfinite()
    measures = norms[is_number & (norms > 0)]
    if not len(measures):
        return torch.zeros_like(rows)
    limit = OUTLIER_FACTOR * measures.quantile(OUTLIER_SHARE)
    if bool((norms <= limit).all()):
        return rows
    shape = (-1, *[1] * (rows.dim() - 1))
    factors = (limit / norms).clamp(max=1).view(shape)
    return torch.where(is_number.view(shape), rows * factors, 0)


def main_axes(gradients: RecordGradients, share: float) -> Axes:
    """Return so many axes of largest second moments that they keep this share of the entries.

    Inputs and outputs keep the root of the share each, and one axis or more.
    """
    axes, kept = gradients.axes(), sqrt(share)
    assert axes.inputs is not None, "a table is not projected"
    inputs, outputs = (
        one[:, -max(1, int(kept * len(one))) :] for one in (axes.inputs, axes.outputs)
    )
    return Axes(inputs, outputs)


def principal_axes(*parts: Float[Tensor, "rows sides"]) -> Float[Tensor, "sides axes"]:
    """Return the eigenvectors of the second moments of rows, of the largest eigenvalues.

    Of fewer rows than sides, the products of rows are decomposed in place of those of sides:
    beyond their span there is nothing to see.
    """
    if min(sum(map(len, parts)), parts[0].shape[1]) > WIDE_SIDES:
        step = -(-sum(map(len, parts)) // WIDE_ROWS)
        parts = tuple(one[::step] for one in parts)
    rows = torch.cat(parts) if len(parts) > 1 else parts[0]
    count, sides = rows.shape
    is_wide = count < sides
    is_exact = min(count, sides) <= PRECISE_SIDES
    exact = rows.double() if is_exact and is_wide else rows
    if is_wide:
        products = exact @ exact.T
    elif is_exact:  # in parts, as the rows in float64 may be as large as all gradients
        products = rows.new_zeros(sides, sides, dtype=torch.float64)
        for part in torch.split(rows, ROWS_AT_ONCE):
            products += part.double().T @ part.double()
    else:
        products = rows.T @ rows
    # Gradients on the way to a diverged model are not finite; their evidence is none.
    values, vectors = torch.linalg.eigh(products.nan_to_num(0, 0, 0))
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    kept[:-MOST_AXES] = False
    kept[-1] = True  # also if all rows are 0
    values, vectors = values[kept], vectors[:, kept]
    if is_wide:
        vectors = exact.T @ (vectors / values.clamp(min=1e-30).sqrt())
    found: Tensor = vectors.to(rows.dtype)
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """How well updates fit the gradient of each record.

    For a gradient J, an update U and its covariance C, the *fit* N is - <J, C^-1 U>, and the
    *strength* S is <J, C^-1 J>. Under U = -s J + a normal rest with covariance C, the
    log-likelihood ratio of s is s N - s^2 S / 2: a matched filter. Layers, rounds and senders
    add up.
    """

    fit: Float[Tensor, " records"]
    strength: Float[Tensor, " records"]

    def standardised(self) -> "Evidence":
        """Return evidence with fit / sqrt(strength) of median 0 and the spread of a normal.

        The covariance is rough, so the spread over records that nobody trained on is not 1.
        Most records are such ones, so medians show it, and the lowest scores, which are theirs.
        The latter are far below where a layer's few numbers say little but the label of a
        record, as the vectors of norms do; by the median alone they would outweigh all layers.
        """
        root = self.strength.sqrt()
        scores = self.fit / root
        centre = scores.median()
        spread = torch.maximum(
            (scores - centre).abs().median() / MEDIAN_DEVIATION,
            (centre - scores.quantile(LOW_SHARE)) / LOW_DEVIATION,
        )
        # The update is 0 or not finite, or scores differ by rounding alone: it tells nothing.
        if not spread > SMALLEST_SPREAD * scores.abs().median():
            smallest = torch.finfo(torch.float32).tiny
            return Evidence(torch.zeros_like(scores), torch.full_like(scores, smallest))
        square = spread.square()
        return Evidence((self.fit - centre * root) / square, self.strength / square)


def evidence_of(
    gradients: RecordGradients, update: Float[Tensor, "outputs inputs"]
) -> Evidence:
    """Return the evidence of each record in a layer's update, both in the same axes.

    The covariance is diagonal: the mean squares of gradients times a factor, plus noise that
    all entries have alike. Factor and noise are those under which the update is most likely.
    """
    return _Bands.of(gradients.mean_squares(), 1).evidence(gradients, update)[0]


def evidence_by_band(
    gradients: RecordGradients, update: Float[Tensor, "outputs inputs"]
) -> list[Evidence]:
    """Return the evidence of each record in each of `BANDS` bands of a layer's inputs.

    A band has inputs of like mean squares, and a factor and a noise of its own.
    """
    return _Bands.of(gradients.mean_squares(), BANDS).evidence(gradients, update)


def evidence_beside_others(
    gradients: RecordGradients,
    update: Float[Tensor, "outputs inputs"],
    alone: Sequence[Evidence],
    probabilities: Float[Tensor, " records"],
) -> list[Evidence]:
    """Return the evidence of each record, by band, in what others leave of a layer's update.

    Likely members have the same mean weight s in a band U of the update: with M = sum p J,
    their fits show that s is at most sum p N / max(sum p S, <M, C^-1 M>). The first is right if
    gradients are uncorrelated; the second is the least-squares fit of U, and far smaller where
    those of one label overlap. What is left for record i is U + s times the sum of p J over all
    other records. So a member no longer hides others, and the covariance is that of the rest.

    Args:
        gradients: of all records, in the axes of the update.
        update: in the same axes.
        alone: the result of `evidence_by_band` for both.
        probabilities: p, that the sender trained on each record.

    """
    bands = _Bands.of(gradients.mean_squares(), BANDS)
    likely = gradients.weighted_sum(probabilities.to(update.dtype))
    overlaps = (likely.square() * bands.weights(update)).sum(0) @ bands.inputs
    strengths = torch.stack([probabilities @ one.strength for one in alone])
    fits = torch.stack([probabilities @ one.fit for one in alone])
    # No record may be likely.
    least = torch.finfo(strengths.dtype).tiny
    most = torch.maximum(strengths, overlaps.to(strengths.dtype)).clamp(min=least)
    weights = (fits / most).clamp(min=0)
    rest = update + likely * (bands.inputs @ weights.to(update.dtype))
    return [
        Evidence(one.fit + weight * probabilities * one.strength, one.strength)
        for weight, one in zip(weights, bands.evidence(gradients, rest), strict=True)
    ]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Bands:
    """Bands of the inputs of a layer, with about as many inputs each.

    Args:
        moments: the mean squares of gradients.
        inputs: 1 where an input is in a band. Inputs at which no record has a gradient are in
            none.

    """

    moments: Float[Tensor, "outputs inputs"]
    inputs: Float[Tensor, "inputs bands"]

    @classmethod
    def of(cls, moments: Float[Tensor, "outputs inputs"], most: int) -> "_Bands":
        """Return so many bands, or fewer in a small layer, by the mean squares of inputs."""
        sums = moments.sum(0)
        order = sums.argsort()
        order = order[sums[order] > 0] if bool((sums > 0).any()) else order
        count = min(most, len(order), max(1, moments.shape[0] * len(order) // SMALLEST_BAND))
        inputs = moments.new_zeros(moments.shape[1], count)
        for band, places in enumerate(order.tensor_split(count)):
            inputs[places, band] = 1
        return cls(moments, inputs)

    def weights(self, update: Float[Tensor, "outputs inputs"]) -> Tensor:
        """Return the inverse variance of each entry of an update; 0 outside of bands."""
        found = torch.zeros_like(update)
        for band in self.inputs.bool().T:
            found[:, band] = 1 / entry_variances(self.moments[:, band], update[:, band]).total
        return found

    def evidence(
        self, gradients: RecordGradients, update: Float[Tensor, "outputs inputs"]
    ) -> list[Evidence]:
        """Return the evidence of each record in each band."""
        weights = self.weights(update)
        fits = -gradients.products(update * weights, self.inputs).double()
        strengths = gradients.squares(weights, self.inputs).double()
        tells = (update * weights).any(0).to(self.inputs.dtype) @ self.inputs > 0
        strengths = strengths * tells  # Zeros say nothing of any record.
        smallest = torch.finfo(torch.float32).tiny
        return [
            Evidence(fit, strength)
            for fit, strength in zip(fits.T, strengths.clamp(min=smallest).T, strict=True)
        ]


def sum_of(parts: Sequence[Evidence]) -> Evidence:
    """Return the evidence of parts that share no noise."""
    return Evidence(
        torch.stack([one.fit for one in parts]).sum(0),
        torch.stack([one.strength for one in parts]).sum(0),
    )


def combine_parts(parts: Sequence[Evidence]) -> Evidence:
    """Return the evidence of each record in all bands of all layers together.

    Scores of the parts are correlated, most of all in convolutions: what all records of a label
    have in common shows in several. So they are weighted by the inverse of their correlations
    over records. What likely members add to scores is subtracted before these are measured.
    """
    scaled = [one.standardised() for one in parts]
    roots = torch.stack([one.strength.sqrt() for one in scaled], 1)
    scores = torch.stack([one.fit for one in scaled], 1) / roots
    tells = scores.any(0)
    if not bool(tells.any()):
        return scaled[0]
    roots, scores = roots[:, tells], scores[:, tells]
    total = sum_of(scaled).standardised()
    likely = member_probabilities(total)
    least = torch.finfo(total.strength.dtype).tiny  # No record may be likely.
    weight = (likely @ total.fit) / (likely @ total.strength).clamp(min=least)
    added = (likely * weight.clamp(min=0)).unsqueeze(1) * roots
    bounded = (scores - added).clamp(-LARGEST_SCORE, LARGEST_SCORE)
    moments = bounded.T @ bounded
    deviations = moments.diagonal().sqrt()
    correlations = moments / deviations / deviations.unsqueeze(1)
    ridge = CORRELATION_RIDGE + len(correlations) / len(scores)
    correlations.diagonal().add_(ridge)
    weights = torch.linalg.solve(correlations, roots.T).T
    return Evidence((weights * scores).sum(1), (weights * roots).sum(1)).standardised()


@final
@dataclass(frozen=True, slots=True, eq=False)
class EntryVariances:
    """The variances of an update's entries: c (moments + noise).

    Args:
        total: of each entry.
        noise: the part that all entries have alike.

    """

    total: Float[Tensor, "outputs inputs"]
    noise: float

    def without(self, noise: float, update: Float[Tensor, "outputs inputs"]) -> Tensor:
        """Return the update less this noise, as far as its variances tell: a Wiener filter."""
        explained = (self.total - self.noise).clamp(min=0)
        least = torch.finfo(explained.dtype).tiny
        return update * (explained / (explained + noise).clamp(min=least))


def entry_variances(
    moments: Float[Tensor, "outputs inputs"], update: Float[Tensor, "outputs inputs"]
) -> EntryVariances:
    """Return the variances of an update's entries in axes where they are uncorrelated.

    The noise is the one of `NOISE_SHARES` under which the update is most likely, and the factor
    follows. So noise is measured, whether or not a defense that adds it is known.
    """
    precise = moments.double() + RIDGE * moments.double().mean()
    smallest = torch.finfo(torch.float64).tiny ** 0.25
    precise = precise.clamp(min=smallest)
    squares = update.double().square() + smallest
    mean = precise.mean()
    best, found, noise = float("inf"), precise, 0.0
    for share in NOISE_SHARES:
        variances = precise + share * mean
        factor = (squares / variances).mean()
        unlikely = float(factor.log() + variances.log().mean())
        if unlikely < best:
            best, found = unlikely, factor * variances
            noise = float(factor * share * mean)
    least = torch.finfo(update.dtype).tiny ** 0.5
    return EntryVariances(found.to(update.dtype).clamp(min=least), noise)


def log_likelihood_ratios(rounds: Sequence[Evidence]) -> Float[Tensor, " records"]:
    """Return the log-likelihood ratio that one sender trained on each record in all rounds.

    A non-member's fit is normal with variance S, and so is that of a member around w S, whose
    weight w is normal with mean s and deviation `RELATIVE_SPREAD` s. The mean weight is the
    same for all records and rounds. It is one of `TYPICAL_SCORES`, as likely as it makes all
    fits if a share `MEMBER_SHARE` of records, which nobody names, are members. So the ratios
    hold for any learning rate, optimizer and clipping. A member's gradient is never added to an
    update, so fits below the one of the smallest ratio say no more than that one.
    """
    median = torch.stack([one.strength for one in rounds]).sum(0).median().sqrt()
    ratios = torch.stack(
        [
            torch.stack([_ratios_at(one, score / median) for one in rounds]).sum(0)
            for score in TYPICAL_SCORES
        ]
    )  # (scores, records)
    odds = ratios + log(MEMBER_SHARE / (1 - MEMBER_SHARE))
    likelihoods = functional.softplus(odds).sum(1, keepdim=True).log_softmax(0)
    found: Tensor = (ratios + likelihoods).logsumexp(0)
    return found


def member_probabilities(evidence: Evidence) -> Float[Tensor, " records"]:
    """Return the probability of each record, if a share `MEMBER_SHARE` of them are members."""
    odds = log_likelihood_ratios([evidence]) + log(MEMBER_SHARE / (1 - MEMBER_SHARE))
    return odds.sigmoid()


def _ratios_at(evidence: Evidence, weight: Tensor) -> Float[Tensor, " records"]:
    strength = evidence.strength
    fit = evidence.fit.clamp(min=-1 / (RELATIVE_SPREAD**2 * weight))
    widened = 1 + (RELATIVE_SPREAD * weight) ** 2 * strength
    residual = (fit - weight * strength).square() / strength
    ratios: Tensor = (fit.square() / strength - residual / widened - widened.log()) / 2
    return ratios
