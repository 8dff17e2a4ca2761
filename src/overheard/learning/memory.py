"""The number of clients that fit into memory at once."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.learning.layer_calls import LayersWrittenOut
from overheard.learning.seeding import seeded
from overheard.learning.training_job import ClientTask, TrainingJob

MEMORY_SHARE = 0.5
"""Share of the free memory to use; the rest is for the caller and for estimation errors."""

COPIES_OF_WEIGHTS = {"cpu": 6, "cuda": 10}
"""Weights, gradients, two moments, a scratch copy and the returned change. On a GPU also the
weights and moments before a step and the weights after it, while its recording is compared."""

LARGEST_CHUNK = {"cpu": 64, "cuda": 128}
"""Most clients in a stack. On a CPU the census network is fastest at 32 clients in a stack (7.3
times a plain loop, 6.9 at 128); the figure for GPUs is a guess."""

UNKNOWN_MEMORY = 2 * 2**30
"""Bytes assumed to be free if the system does not report them."""


def clients_that_fit(model: nn.Module, job: TrainingJob, clients: Sequence[ClientTask]) -> int:
    """Return how many clients to stack, at least 1, so that weights and activations fit."""
    kind = "cpu" if job.device.type == "cpu" else "cuda"
    weights = sum(weight.numel() * weight.element_size() for weight in job.start.values())
    batch = job.recipe.batch_size(max((len(member.rows) for member in clients), default=1))
    # The backward pass needs the activations and a gradient of the same size for each.
    each = COPIES_OF_WEIGHTS[kind] * weights + 2 * batch * _activation_bytes(model, job)
    return max(1, min(LARGEST_CHUNK[kind], int(MEMORY_SHARE * free_bytes(job.device) / each)))


def _activation_bytes(model: nn.Module, job: TrainingJob) -> int:
    """Measure the bytes that a forward pass of one example stores for the backward pass.

    Its layers are written out, as those of a stack are. On a GPU the neighbourhoods that
    convolutions multiply are stored too.
    """
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    saved_bytes = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal saved_bytes
        if tensor.untyped_storage().data_ptr() not in weights:
            saved_bytes += tensor.numel() * tensor.element_size()
        return tensor

    def count_patches(layer: nn.Conv2d, given: tuple[Tensor], output: Tensor) -> None:
        nonlocal saved_bytes
        numbers = layer.weight[0].numel() * output[0, 0].numel()
        saved_bytes += numbers * output.element_size()

    example = job.pool.inputs[:1].cpu()
    if example.is_floating_point():
        example = example.to(next(model.parameters()).dtype)
    # Dropout would advance the global generator.
    saved = saved_tensors_hooks(count, lambda tensor: tensor)
    convolutions = [one for one in model.modules() if isinstance(one, nn.Conv2d)]
    is_on_gpu = job.device.type != "cpu"
    hooks = [one.register_forward_hook(count_patches) for one in convolutions if is_on_gpu]
    with seeded(Seed(0)), saved, sdpa_kernel(SDPBackend.MATH), LayersWrittenOut():
        model(example)
    for hook in hooks:
        hook.remove()
    return saved_bytes


def full_memory(client: str) -> PlanError:
    """Return the error that one client alone does not fit into the memory of the GPU."""
    return PlanError(
        f"{client} does not fit into the memory of the GPU: set training.batch to a smaller "
        "number, or device to 'cpu'"
    )


def free_bytes(device: torch.device) -> int:
    """Return the free memory of the device, in bytes, with what torch keeps to use it again."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on macOS and Windows
        return UNKNOWN_MEMORY
