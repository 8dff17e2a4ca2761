"""Says by a few numbers what an input is about, without any trained model."""

import re
from importlib import import_module

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.reading.texts import PADDING

REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""How a function is referred to: "package.module:function"."""

FEATURES = 64
"""Numbers that an input is reduced to: enough to tell hundreds of topics apart."""

SPARE = 8
"""Directions that are followed and then dropped, so that those kept are the leading ones."""

PASSES = 2
"""Times that the directions are sharpened; where singular values fall slowly, 2 suffice."""

ROUNDING = 1e-5
"""Length below which what is left of a text of length 1 is the rounding of float32."""


def features_of(
    inputs: Shaped[Tensor, "examples ..."], extractor: str | None
) -> Float[Tensor, "examples features"]:
    """What the extractor gives; without one, the leading directions of the inputs themselves.

    The up to `FEATURES` leading singular directions (Halko, Martinsson and Tropp 2011,
    algorithm 4.4, by a fixed seed) of a matrix with a row an input: of a table, its columns,
    each standardised; of images, their pixels less the mean image; of texts, how often each
    word is there, rare words weighing more (tf-idf), at length 1 before and after the
    reduction: latent semantic analysis.

    Raises:
        PlanError: if the extractor cannot be imported, or gives no features.

    """
    if extractor is not None:
        return _extracted(inputs, extractor)
    if not inputs.is_floating_point():
        words = _bags(inputs)
        return _unit(_leading(words, words.t().coalesce()))
    flat = inputs.flatten(1)
    flat = flat - flat.mean(0)
    if inputs.dim() == 2:
        spread = flat.square().mean(0).sqrt()
        flat = flat / spread.where(spread > 0, 1.0)
    return _leading(flat, flat.T)


def _extracted(
    inputs: Shaped[Tensor, "examples ..."], reference: str
) -> Float[Tensor, "examples features"]:
    place, _, function = reference.partition(":")
    try:
        extract = vars(import_module(place))[function]
    except (ImportError, KeyError) as error:
        raise PlanError(
            f"the extractor {reference} cannot be imported ({error}): install its package or "
            "put its folder on PYTHONPATH"
        ) from error
    if not callable(extract):
        raise PlanError(f"the extractor {reference} is a {type(extract).__name__}, no function")
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
            f"the extractor {reference} must give finite numbers, a row for each of the "
            f"{len(inputs)} inputs, got "
            f"{tuple(features.shape) if isinstance(features, Tensor) else type(features)}"
        )
    return features.float().cpu()


def _bags(texts: Shaped[Tensor, "examples tokens"]) -> Float[Tensor, "examples words"]:
    """Bags of words, sparse: a word of a text weighs log(texts / texts that have it) a time."""
    text, place = (texts != PADDING).nonzero().T
    words = torch.stack([text, texts[text, place]])
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


def _leading(
    matrix: Float[Tensor, "examples columns"], transposed: Float[Tensor, "columns examples"]
) -> Float[Tensor, "examples features"]:
    """The rows of a matrix, sparse or not, along its leading directions."""
    most = min(matrix.shape)
    generator = Seed(0).child("features").generator()
    sketch = matrix @ torch.randn(
        matrix.shape[1], min(FEATURES + SPARE, most), generator=generator
    )
    for _ in range(PASSES):
        sketch = matrix @ (transposed @ torch.linalg.qr(sketch).Q)
    basis = torch.linalg.qr(sketch).Q  # (examples, directions)
    left, sizes, _ = torch.linalg.svd((transposed @ basis).T, full_matrices=False)
    features: Tensor = basis @ (left * sizes)[:, : min(FEATURES, most)]
    return features


def _unit(rows: Float[Tensor, "examples features"]) -> Float[Tensor, "examples features"]:
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > ROUNDING, rows / lengths, 0.0)
