"""How many members fit into memory at once."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from overheard.learning.cohort import Lesson, Member

SHARE = 0.5
"""Of the free memory: the rest is for the caller, and for what this estimate leaves out."""

COPIES_OF_WEIGHTS = 6
"""The weights, their gradients, two moments, a scratch copy and the change that is given."""

LARGEST_CHUNK = {"cpu": 64, "cuda": 128}
"""On a CPU the census network is fastest at 32 members a stack (7.3 times a plain loop, 6.9 at
128); the figure for GPUs is a guess."""

UNKNOWN_MEMORY = 2 * 2**30
"""Bytes taken as free where the system does not say."""


def members_that_fit(model: nn.Module, lesson: Lesson, members: Sequence[Member]) -> int:
    """How many members to stack, of at least 1, so that weights and activations fit."""
    largest = LARGEST_CHUNK.get(lesson.device.type, LARGEST_CHUNK["cuda"])
    weights = sum(weight.numel() * weight.element_size() for weight in lesson.start.values())
    batch = min(lesson.recipe.batch, max((len(member.rows) for member in members), default=1))
    # Activations are kept for the way back, where each meets a gradient of its size.
    each = COPIES_OF_WEIGHTS * weights + 2 * batch * _activations(model, lesson)
    return max(1, min(largest, int(SHARE * free_bytes(lesson.device) / each)))


def _activations(model: nn.Module, lesson: Lesson) -> int:
    """Bytes that a forward pass of one example keeps for the way back."""
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        if tensor.untyped_storage().data_ptr() not in own:
            kept += tensor.numel() * tensor.element_size()
        return tensor

    example = lesson.pool.inputs[:1].cpu()
    if example.is_floating_point():
        example = example.to(next(model.parameters()).dtype)
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        model(example)
    return kept


def free_bytes(device: torch.device) -> int:
    """How much memory nobody uses."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on macOS and Windows
        return UNKNOWN_MEMORY
