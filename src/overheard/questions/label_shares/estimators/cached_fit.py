"""Fitted estimators of a round, cached for reuse."""

from hashlib import blake2b

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.compute_settings import TensorCache
from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings
from overheard.questions.label_shares.estimators.cross_fit import (
    NETWORKS,
    CrossFit,
    fit_with_cross_fitting,
)
from overheard.questions.label_shares.estimators.deep_set_regressor import (
    COPIES,
    DEEP_SET_WIDTH,
    DROPOUT,
)
from overheard.questions.label_shares.estimators.mlp_regressor import (
    MLP_WIDTH,
    MOST_COMPONENTS,
)
from overheard.simulation.cache_keys import text_key


def cached_cross_fit(
    cache: TensorCache,
    readings: ProbeReadings,
    shares: Float[Tensor, "clients classes"],
    halves: Int[Tensor, " clients"],
    steps: int,
    seed: Seed,
) -> CrossFit:
    """Return `fit_with_cross_fitting` of the same arguments, from the cache if possible.

    The result is the same to the bit. Attacks use a round alone and together with others; its
    networks are trained once.
    """
    sizes = [] if readings.log_sizes is None else [readings.log_sizes]
    tensors = (
        readings.last_layer_change,
        readings.outputs,
        readings.broadcast_outputs,
        readings.class_gradients,
        *sizes,
    )
    shapes = (NETWORKS, COPIES, MOST_COMPONENTS, DEEP_SET_WIDTH, MLP_WIDTH, DROPOUT)
    key = text_key(repr((_digest((*tensors, shares, halves)), shapes, steps, seed)))
    cached = cache.load(key)
    if cached is not None:
        return CrossFit.from_tensors(cached)
    fit = fit_with_cross_fitting(readings, shares, halves, steps, seed)
    cache.save(key, fit.tensors())
    return fit


def _digest(tensors: tuple[Tensor, ...]) -> str:
    digest = blake2b(digest_size=20)
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
