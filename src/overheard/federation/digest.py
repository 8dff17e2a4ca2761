"""Tells two runs on different data apart."""

from hashlib import blake2b

import torch
from torch import Tensor

from overheard.federation.federation import Federation


def data_digest(federation: Federation) -> str:
    """A short text that differs where any example, or who held it when, differs."""
    digest = blake2b(digest_size=20)
    for examples in (federation.pool, federation.test):
        for tensor in (examples.inputs, examples.labels):
            _add(digest, tensor)
    for held in federation.rows:
        _add(digest, torch.tensor([len(rows) for rows in held]))
        _add(digest, torch.cat(tuple(held)))
    return digest.hexdigest()


def _add(digest: blake2b, tensor: Tensor) -> None:
    digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
    digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
