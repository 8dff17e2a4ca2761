"""Digests that identify the data of a run."""

from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor

from overheard.core.examples import Examples
from overheard.federation.federation import Federation


def data_digest(federation: Federation) -> str:
    """Return a digest of all examples and of the rounds in which clients hold them.

    Background examples are included only if there are any.
    """
    (digest,) = data_digests((federation,))
    return digest


def data_digests(federations: Sequence[Federation]) -> tuple[str, ...]:
    """Return the digest of each federation; a shared pool is read once.

    Reading MNIST takes 0.2 s, and 0.05 s at half resolution.
    """
    pool_digests: dict[int, blake2b] = {}
    return tuple(_digest(federation, pool_digests) for federation in federations)


def examples_digest(examples: Examples) -> str:
    """Return a digest of examples and their order."""
    digest = blake2b(digest_size=12)
    _add_examples(digest, examples)
    return digest.hexdigest()


def _digest(federation: Federation, pool_digests: dict[int, blake2b]) -> str:
    """Continue the digest of the pool, which `pool_digests` stores by the pool's id."""
    pool = federation.pool
    if id(pool) not in pool_digests:
        pool_digests[id(pool)] = blake2b(digest_size=20)
        _add_examples(pool_digests[id(pool)], pool)
    digest = pool_digests[id(pool)].copy()
    _add_examples(digest, federation.test)
    for rows_of in federation.rows:
        _add(digest, torch.tensor([len(rows) for rows in rows_of]))
        _add(digest, torch.cat(tuple(rows_of)))
    if federation.background is not None:
        digest.update(b"background\n")
        _add_examples(digest, federation.background)
    return digest.hexdigest()


def _add_examples(digest: blake2b, examples: Examples) -> None:
    for tensor in examples.tensors():
        _add(digest, tensor)


def _add(digest: blake2b, tensor: Tensor) -> None:
    digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
    digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
