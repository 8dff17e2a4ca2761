"""CUDA graphs of the rivals and of single kernels."""

from collections.abc import Callable

import torch

from overheard.learning.engines.recorded_steps import end_failed_recording


def recorded(work: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """Record work that was done before, so that its kernels are compiled.

    Raises:
        RuntimeError: if it cannot be recorded; what follows is measured as before.

    """
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    stream = torch.cuda.current_stream()
    try:
        with torch.cuda.graph(graph, pool=pool):
            work()
    except RuntimeError:
        torch.cuda.set_stream(stream)
        end_failed_recording(graph, pool)
        raise
    return graph
