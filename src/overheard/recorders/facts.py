"""What is known of a run before it is recorded."""

from dataclasses import dataclass

from overheard.archive.manifest import DefenseRecord
from overheard.core.recipe import Recipe
from overheard.core.task import Task


@dataclass(frozen=True, slots=True)
class Facts:
    """What no message tells; all but the framework may be left out.

    Args:
        framework: that runs it, with its version, such as "flwr 1.41.0".
        model: the architecture, in words; "" = not told.
        task: shape of an input and names of the classes.
        recipe: how clients train.
        defenses: in the order in which they act.
        rounds: how many are planned.
        participation: share of the clients asked in a round (0..1).

    """

    framework: str
    model: str = ""
    task: Task | None = None
    recipe: Recipe | None = None
    defenses: tuple[DefenseRecord, ...] = ()
    rounds: int | None = None
    participation: float | None = None
