"""What a researcher writes without Overheard: one client after the other on the GPU."""

from collections.abc import Callable

import torch
from cohorts import Cohort
from graphs import recorded
from torch import Tensor
from torch.nn import functional


def plain_loop(cohort: Cohort) -> Callable[[], None]:
    """Return a function that trains the clients in turn, with one launch an operation."""
    model = cohort.build().cuda().train()
    parameters = list(model.parameters())
    names = [name for name, _ in model.named_parameters()]
    start = [cohort.start[name].cuda() if name in cohort.start else None for name in names]
    inputs, labels = cohort.pool.inputs.cuda(), cohort.pool.labels.cuda()

    def train() -> None:
        for number in range(len(cohort.clients)):
            _load(parameters, start)
            trained = [one for one in parameters if one.requires_grad]
            optimizer = torch.optim.SGD(trained, lr=cohort.recipe.rate)
            for rows in cohort.batches(number):
                there = rows.cuda()
                optimizer.zero_grad()
                functional.cross_entropy(model(inputs[there]), labels[there]).backward()
                optimizer.step()
            [one.detach().cpu() for one in trained]

    return train


def plain_graph(cohort: Cohort) -> Callable[[], None]:
    """Return the same with a whole step as a CUDA graph, one for each size of a batch."""
    model = cohort.build().cuda().train()
    parameters = list(model.parameters())
    names = [name for name, _ in model.named_parameters()]
    start = [cohort.start[name].cuda() if name in cohort.start else None for name in names]
    trained = [one for one in parameters if one.requires_grad]
    inputs, labels = cohort.pool.inputs.cuda(), cohort.pool.labels.cuda()
    sizes = {len(rows) for rows in cohort.batches(0)}
    graphs = {size: _capture(model, trained, inputs, labels, size, cohort) for size in sizes}

    def train() -> None:
        for number in range(len(cohort.clients)):
            _load(parameters, start)
            for rows in cohort.batches(number):
                held, graph = graphs[len(rows)]
                held.copy_(rows, non_blocking=True)
                graph.replay()
            [one.detach().cpu() for one in trained]

    return train


def _capture(
    model: torch.nn.Module,
    trained: list[torch.nn.Parameter],
    inputs: Tensor,
    labels: Tensor,
    size: int,
    cohort: Cohort,
) -> tuple[Tensor, torch.cuda.CUDAGraph]:
    rows = torch.zeros(size, dtype=torch.int64, device="cuda")

    def step() -> None:
        loss = functional.cross_entropy(
            model(inputs.index_select(0, rows)), labels.index_select(0, rows)
        )
        gradients = torch.autograd.grad(loss, trained)
        with torch.no_grad():
            torch._foreach_add_(trained, gradients, alpha=-cohort.recipe.rate)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    return rows, recorded(step)


def _load(parameters: list[torch.nn.Parameter], start: list[Tensor | None]) -> None:
    with torch.no_grad():
        for one, at_start in zip(parameters, start, strict=True):
            if at_start is not None:
                one.copy_(at_start)
