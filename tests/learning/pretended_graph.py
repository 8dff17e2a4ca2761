"""A CUDA graph without a GPU: it takes a step again from the numbers in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

from overheard.learning.engines import recorded_steps, stacked_steps


class PretendedGraph:
    """A graph of a step, which counts its repetitions."""

    def __init__(self, step: Callable[[], object]) -> None:
        self._step = step
        self.repeats = 0

    def pool(self) -> tuple[int, int]:
        """Return its memory."""
        return 0, 0

    def replay(self) -> None:
        """Take the step."""
        self.repeats += 1
        self._step()


@contextmanager
def pretended_graphs() -> Iterator[list[PretendedGraph]]:
    """Let stacked clients record such graphs; return them."""
    made = list[PretendedGraph]()

    def record(step: Callable[[], None], memory: object) -> PretendedGraph:
        made.append(PretendedGraph(step))
        return made[-1]

    with (
        patch.object(recorded_steps, "_graph_of", record),
        patch.object(recorded_steps, "_without_waiting", nullcontext),
        patch.object(stacked_steps, "can_record", lambda device: True),
    ):
        yield made
