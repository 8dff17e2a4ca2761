"""Metadata of a run that is known before it is recorded."""

from dataclasses import dataclass

from overheard.archive.manifest import DefenseRecord
from overheard.core.mechanism import ClientSampling
from overheard.core.recipe import Recipe
from overheard.core.task import Task


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Metadata of a run that messages do not contain; all but the framework is optional.

    Args:
        framework: framework of the run, with its version, such as "flwr 1.41.0".
        model: the architecture, in words; "" = unknown.
        task: shape of an input and names of the classes.
        recipe: how clients train.
        defenses: defenses, in the order in which they act.
        rounds: number of planned rounds.
        participation: share of the clients sampled in a round (0..1).
        sampling: how the clients of a round are sampled; None = not stated.
        are_defenses_stated: whether `defenses` are all that there are, so that () means none.
        algorithm: the algorithm with its settings, such as "FedProx(mu=0.1, mean='examples')";
            "" = unknown.

    """

    framework: str
    model: str = ""
    task: Task | None = None
    recipe: Recipe | None = None
    defenses: tuple[DefenseRecord, ...] = ()
    rounds: int | None = None
    participation: float | None = None
    are_defenses_stated: bool = False
    algorithm: str = ""
    sampling: ClientSampling | None = None
