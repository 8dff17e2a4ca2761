"""Low-dimensional features of inputs that need no trained model."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.own_code.reference import import_reference
from overheard.core.seeds import Seed
from overheard.data.reading.texts import PADDING

FEATURES = 64
"""Features per input: enough to distinguish hundreds of topics."""

EXTRA_DIRECTIONS = 8
"""Extra directions in the random projection (oversampling), dropped at the end."""

POWER_ITERATIONS = 2
"""Power iterations; 2 suffice even if singular values decay slowly."""

MIN_LENGTH = 1e-5
"""Length below which a reduced text vector, of length 1 before, is only float32 rounding."""


def compute_features(
    inputs: Shaped[Tensor, "examples ..."], extractor: str | None
) -> Float[Tensor, "examples features"]:
    """Compute features with the extractor; without one, the leading components of the inputs.

    These are up to `FEATURES` leading singular directions (Halko, Martinsson and Tropp 2011,
    algorithm 4.4, with a fixed seed) of a matrix with one row per input. Tables: columns, each
    standardized. Images: pixels minus the mean image. Texts: tf-idf word counts, scaled to
    length 1 before and after the reduction (latent semantic analysis).

    Raises:
        PlanError: if the extractor cannot be imported, or does not return valid features.

    """
    if extractor is not None:
        return _extract_features(inputs, extractor)
    if not inputs.is_floating_point():
        words = _tfidf(inputs)
        return _to_unit_length(_leading_components(words, words.t().coalesce()))
    flat = inputs.flatten(1)
    flat = flat - flat.mean(0)
    if inputs.dim() == 2:
        deviation = flat.square().mean(0).sqrt()
        flat = flat / deviation.where(deviation > 0, 1.0)
    return _leading_components(flat, flat.T)


def _extract_features(
    inputs: Shaped[Tensor, "examples ..."], reference: str
) -> Float[Tensor, "examples features"]:
    extract = import_reference(reference, "extractor", PlanError)
    if not callable(extract):
        raise PlanError(
            f"the extractor {reference} is a {type(extract).__name__}; it must be a function"
        )
    with torch.no_grad():
        features = extract(inputs)
    if not (
        isinstance(features, Tensor)
        and features.is_floating_point()
        and features.dim() == 2
        and len(features) == len(inputs)
        and bool(features.isfinite().all())
    ):
        raise PlanError(
            f"the extractor {reference} must return a matrix of finite numbers with one row "
            f"for each of the {len(inputs)} inputs, got "
            f"{tuple(features.shape) if isinstance(features, Tensor) else type(features)}"
        )
    return features.float().cpu()


def _tfidf(texts: Shaped[Tensor, "examples tokens"]) -> Float[Tensor, "examples words"]:
    """Compute sparse tf-idf vectors: count * log(texts / texts with the word), at length 1."""
    text, position = (texts != PADDING).nonzero().T
    words = torch.stack([text, texts[text, position]])
    size = (len(texts), int(texts.max()) + 1)
    counts = torch.sparse_coo_tensor(
        words, torch.ones(len(text)), size, check_invariants=False
    ).coalesce()
    text, word = counts.indices()
    rarity = (len(texts) / word.bincount(minlength=size[1]).clamp(min=1)).log()
    values = counts.values() * rarity[word]
    lengths = torch.zeros(len(texts)).index_add(0, text, values.square()).sqrt()
    values = values / lengths.where(lengths > 0, 1.0)[text]
    return torch.sparse_coo_tensor(
        counts.indices(), values, size, is_coalesced=True, check_invariants=False
    )


def _leading_components(
    matrix: Float[Tensor, "examples columns"], transposed: Float[Tensor, "columns examples"]
) -> Float[Tensor, "examples features"]:
    """Project the rows of a matrix, sparse or dense, on its leading singular directions."""
    most = min(matrix.shape)
    generator = Seed(0).child("features").generator()
    sketch = matrix @ torch.randn(
        matrix.shape[1], min(FEATURES + EXTRA_DIRECTIONS, most), generator=generator
    )
    for _ in range(POWER_ITERATIONS):
        sketch = matrix @ (transposed @ torch.linalg.qr(sketch).Q)
    basis = torch.linalg.qr(sketch).Q  # (examples, directions)
    left, sizes, _ = torch.linalg.svd((transposed @ basis).T, full_matrices=False)
    features: Tensor = basis @ (left * sizes)[:, : min(FEATURES, most)]
    return features


def _to_unit_length(
    rows: Float[Tensor, "examples features"],
) -> Float[Tensor, "examples features"]:
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > MIN_LENGTH, rows / lengths, 0.0)
