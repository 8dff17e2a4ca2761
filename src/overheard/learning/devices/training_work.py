"""How much there is to compute in a piece of training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from overheard.core.defense import BuildModel
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model, model_structure
from overheard.learning.seeding import seeded
from overheard.learning.threads import single_thread

FEW = 2
"""Examples in a counted step; what grows with them is told by a step on twice as many."""

KEPT_COUNTS = 256
"""Most counted architectures that are kept."""


GpuEngine = Literal["stacked", "side by side", "one by one"]
"""How a GPU trains several clients."""


@final
@dataclass(frozen=True, slots=True)
class StepCounts:
    """What a forward and a backward pass of a network compute.

    Args:
        operations: multiplications and additions of one example.
        bytes: bytes of results for one example.
        calls: calls of operators of one step.
        fixed_bytes: bytes of results of one step, however many examples it has.

    """

    operations: float
    bytes: float
    calls: int
    fixed_bytes: float


@final
@dataclass(frozen=True, slots=True)
class TrainingWork:
    """A piece of training: alike clients, and how often they are trained.

    Args:
        counts: what a step computes.
        clients: number of clients.
        examples: examples that a client passes, with their repetitions.
        steps: steps of a client.
        chunk: clients that a GPU trains at once.
        update_bytes: bytes of an update.
        is_stacked_on_cpu: whether a CPU stacks them.
        on_gpu: how a GPU trains them.
        in_workers: whether worker processes on the CPU can share the work.
        read: examples whose outputs are computed after the training of a client.
        times: how often such clients are trained; a GPU is started once.

    """

    counts: StepCounts
    clients: int
    examples: float
    steps: float
    chunk: int
    update_bytes: float
    is_stacked_on_cpu: bool
    on_gpu: GpuEngine
    in_workers: bool
    read: float = 0.0
    times: int = 1


_COUNTED: dict[tuple[object, ...], StepCounts | None] = {}


def count_step(
    build_model: BuildModel, inputs: Shaped[Tensor, "examples ..."]
) -> StepCounts | None:
    """Count what a step of this network computes, by running two on the CPU.

    Networks of one structure are counted once.

    Args:
        build_model: builds the network.
        inputs: examples such as those it trains on; one or more.

    Returns:
        the counts; None if the network cannot run on them.

    """
    structure = model_structure(build_model)
    shapes = tuple((name, tuple(one.shape)) for name, one in structure.named_parameters())
    key = (str(structure), shapes, tuple(inputs.shape[1:]), inputs.dtype)
    if key not in _COUNTED:
        while len(_COUNTED) >= KEPT_COUNTS:
            del _COUNTED[next(iter(_COUNTED))]
        _COUNTED[key] = _count(build_model, inputs[:1].detach().cpu())
    return _COUNTED[key]


def _count(build_model: BuildModel, example: Tensor) -> StepCounts | None:
    try:
        model = fresh_model(build_model, Seed(0)).train()
        with seeded(Seed(0)), single_thread():  # dropout advances the global generator
            few, more = (
                _count_pass(model, example.expand(count, *example.shape[1:]))
                for count in (FEW, 2 * FEW)
            )
    # The model may be of another package, and fails with an error of its own where it trains.
    except Exception:
        return None
    return StepCounts(
        (more.operations - few.operations) / FEW,
        (more.bytes - few.bytes) / FEW,
        few.calls,
        max(0.0, 2 * few.bytes - more.bytes),
    )


def _count_pass(model: nn.Module, inputs: Tensor) -> StepCounts:
    """Count one step on all inputs."""
    # Here, as its import takes a tenth of a second, which audits without a GPU need not wait.
    from torch.utils.flop_counter import FlopCounterMode

    if inputs.is_floating_point():
        inputs = inputs.to(next(model.parameters()).dtype)
    with FlopCounterMode(display=False) as operations, _ResultCounter() as results:
        model(inputs).sum().backward()
    model.zero_grad(set_to_none=True)
    return StepCounts(operations.get_total_flops(), results.bytes, results.calls, 0.0)


class _ResultCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts calls of operators, and the bytes of their results; views are left out."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = 0
        self.bytes = 0

    # Any: torch calls this with whatever an operator takes.
    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {one.untyped_storage().data_ptr() for one in _strided(args)}
        made = _strided(result)
        is_view = all(one.untyped_storage().data_ptr() in given for one in made)
        if not is_view or func._schema.is_mutable:  # type: ignore[attr-defined]
            self.calls += 1
            self.bytes += sum(one.numel() * one.element_size() for one in made)
        return result


def _strided(tree: Any) -> list[Tensor]:
    return [
        one
        for one in tree_leaves(tree)
        if isinstance(one, Tensor) and one.layout == torch.strided
    ]
