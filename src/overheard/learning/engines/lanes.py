"""A copy of a network that trains clients in memory that stays, so that a graph can do it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn

from overheard.core.recipe import Recipe
from overheard.learning.engines.recorded_steps import end_failed_recording, without_waiting
from overheard.learning.engines.stacked_steps import can_record
from overheard.learning.loss import mean_loss
from overheard.learning.memory_layout import MemoryOrder
from overheard.learning.optimizers import build_optimizer
from overheard.learning.sent_tensors import sent_tensors, trainable_parameters


class CannotRepeatError(Exception):
    """A step of the network cannot be recorded once and repeated."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SharedTensors:
    """What all lanes read.

    Args:
        recipe: how clients train.
        memory_order: of images.
        inputs: of all clients, as they are stored in this order.
        labels: of all clients.
        order: rows of the examples, in the order of training, of one client after the other.
        trained: the tensors that are sent, after training, with an axis of clients.
        losses: the mean loss of each client.

    """

    recipe: Recipe
    memory_order: MemoryOrder
    inputs: Tensor
    labels: Tensor
    order: Tensor
    trained: Sequence[Tensor]
    losses: Tensor


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClientRun:
    """The training of one client.

    Args:
        start: its start weights, in the order of the tensors that are sent.
        corrections: added to its gradients; () = nothing.
        place: where its rows begin in `SharedTensors.order`.
        sizes: those of the batches of an epoch.
        epochs: its passes over them.
        row: where its results go.

    """

    start: Sequence[Tensor]
    corrections: Sequence[Tensor]
    place: int
    sizes: Sequence[int]
    epochs: int
    row: int


@final
class Lane:
    """A copy of the network that trains one client after the other, in memory that stays.

    On a GPU it has a stream of its own, and a step with a batch of a recorded size is a CUDA
    graph.
    """

    def __init__(
        self,
        model: nn.Module,
        shared: SharedTensors,
        names: Sequence[str],
        *,
        is_corrected: bool,
    ) -> None:
        self.model = model
        self._shared = shared
        self._parameters = list(trainable_parameters(model).values())
        sent = sent_tensors(model)
        self._sent = [sent[name] for name in names]
        self._others = [one for name, one in model.named_buffers() if name not in names]
        self._others_at_start = [one.clone() for one in self._others]
        self._corrections = (
            [torch.zeros_like(one) for one in self._parameters] if is_corrected else []
        )
        self._optimizer = build_optimizer(shared.recipe, self._parameters, self._corrections)
        device = self._parameters[0].device
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._total = torch.zeros((), dtype=torch.float64, device=device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._device = device
        self._stream = _new_stream(device) if device.type == "cuda" else None
        self._pool = None if self._stream is None else torch.cuda.graph_pool_handle()

    def train(self, runs: Sequence[ClientRun]) -> Iterator[None]:
        """Train clients in turn, with a pause after each step."""
        for run in runs:
            yield from self._train(run)

    def _train(self, run: ClientRun) -> Iterator[None]:
        with self.here():
            self.begin(run)
        for epoch in range(run.epochs):
            for number, size in enumerate(run.sizes):
                with self.here():
                    if epoch == run.epochs - 1 and number == 0:
                        self._total.zero_()
                    self.step(size)
                yield
        with self.here(), torch.no_grad():
            kept = [one[run.row] for one in self._shared.trained]
            torch._foreach_copy_(kept, [one.detach() for one in self._sent])
            self._shared.losses[run.row].copy_(self._total / sum(run.sizes))

    def here(self) -> AbstractContextManager[Any]:
        """Return the block in which the lane computes."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def wait_for_others(self) -> None:
        """Begin nothing before what was begun elsewhere is done."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))

    def let_others_wait(self) -> None:
        """Let what is begun elsewhere wait for all that was begun here."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def mark(self) -> torch.cuda.Event | None:
        """Return the event that all that was begun here is done; None = it is."""
        return None if self._stream is None else self._stream.record_event()

    def begin(self, run: ClientRun) -> None:
        """Begin with the start weights of a client."""
        with torch.no_grad():
            torch._foreach_copy_(self._sent, list(run.start))
            for buffer, at_start in zip(self._others, self._others_at_start, strict=True):
                buffer.copy_(at_start)
            for mine, given in zip(self._corrections, run.corrections, strict=False):
                mine.copy_(given)
            if self._corrections and not run.corrections:
                torch._foreach_zero_(self._corrections)
            self._optimizer.restart(self._parameters)
            self._place.fill_(run.place)
            self._total.zero_()

    def step(self, size: int) -> None:
        """Take a step with the next examples, this many."""
        if size in self._graphs:
            self._graphs[size].replay()
        else:
            self.compute_step(size)

    def compute_step(self, size: int) -> None:
        """Take a step without a graph."""
        shared, recipe = self._shared, self._shared.recipe
        places = self._place + torch.arange(size, device=self._place.device)
        rows = shared.order.index_select(0, places)
        inputs = shared.memory_order.read(shared.inputs.index_select(0, rows))
        labels = shared.labels.index_select(0, rows)
        logits = self.model(inputs)
        loss = mean_loss(logits, labels, recipe.loss, recipe.label_smoothing)
        gradients = torch.autograd.grad(loss, self._parameters)
        with torch.no_grad():
            self._optimizer.step(self._parameters, gradients)
            self._total += loss.detach() * size
            self._place += size

    def record(self, size: int) -> None:
        """Record the graph of a step with batches of this size.

        Raises:
            CannotRepeatError: if the step cannot be recorded.
            torch.OutOfMemoryError: if it does not fit into memory.

        """
        if can_record(self._device):
            with self.here():
                self._graphs[size] = graph_of(partial(self.compute_step, size), self._pool)

    def numbers(self) -> list[Tensor]:
        """Return copies of all tensors that are sent."""
        return [one.detach().clone() for one in self._sent]

    def state_outside(self) -> list[object]:
        """Return what a step that can be repeated does not change.

        These are the generators of random numbers, numbers of Python, and which tensors there
        are.
        """
        state: list[object] = [bytes(torch.get_rng_state().numpy())]
        if self._stream is not None:
            drawn = torch.cuda.get_rng_state(self._stream.device)
            state.append(bytes(drawn.numpy()))
        for module in self.model.modules():
            state += [(key, id(one)) for key, one in module.named_buffers(recurse=False)]
            state += [
                (key, one)
                for key, one in vars(module).items()
                if isinstance(one, (bool, int, float, str))
            ]
        return state


def _new_stream(device: torch.device) -> torch.cuda.Stream:
    made: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return made


def graph_of(
    step: Callable[[], None], pool: "torch.cuda._POOL_HANDLE | None"
) -> torch.cuda.CUDAGraph:
    """Record a step on the current stream, with memory of this pool.

    Raises:
        CannotRepeatError: if the step cannot be recorded.
        torch.OutOfMemoryError: if it does not fit into memory.

    """
    graph = torch.cuda.CUDAGraph()
    # Without the checks of other threads, which may use the GPU meanwhile.
    graph.capture_begin(pool, capture_error_mode="thread_local")
    try:
        step()
        graph.capture_end()
    except BaseException as error:
        end_failed_recording(graph, pool)
        if isinstance(error, RuntimeError) and not _is_memory_full(error):
            reason = f"its steps cannot be recorded ({first_line(error)})"
            raise CannotRepeatError(reason) from error
        raise
    return graph


def _is_memory_full(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError)


def first_line(error: Exception) -> str:
    """Return the first line of an error; those of CUDA have many."""
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def no_waiting(device: torch.device) -> Iterator[None]:
    """Refuse operations that wait for the GPU, as a graph cannot.

    Raises:
        CannotRepeatError: if there is one.

    """
    try:
        with without_waiting() if can_record(device) else nullcontext():
            yield
    except RuntimeError as error:
        if _is_memory_full(error):
            raise
        raise CannotRepeatError(f"a step waits for the GPU ({first_line(error)})") from error
