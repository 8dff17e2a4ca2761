"""What a network can take as input, and what to say of the rest."""

from math import prod

from overheard.core.errors import PlanError
from overheard.core.task import Task


def numbers(task: Task, model: str) -> int:
    """How many numbers one input has.

    Raises:
        PlanError: if inputs are texts.

    """
    if task.vocabulary is not None:
        raise PlanError(
            f"the model {model} takes numbers, and this data set holds texts: "
            "choose the model lstm or text_bag"
        )
    return prod(task.shape)


def image(task: Task, model: str, smallest: int) -> tuple[int, int, int]:
    """Channels, height and width of one input.

    Raises:
        PlanError: if inputs are no images of this height and width at least.

    """
    if task.vocabulary is not None or len(task.shape) != 3:
        kind = "lstm or text_bag" if task.vocabulary is not None else "mlp"
        raise PlanError(
            f"the model {model} takes images (channels, height, width), and this data set's "
            f"inputs have shape {task.shape}: choose the model {kind}"
        )
    channels, height, width = task.shape
    if min(height, width) < smallest:
        raise PlanError(
            f"the model {model} takes images of {smallest} x {smallest} pixels or more, and "
            f"this data set's have {height} x {width}: choose a shallower model, such as mlp"
        )
    return channels, height, width


def vocabulary(task: Task, model: str) -> int:
    """How many tokens a text may hold, padding included.

    Raises:
        PlanError: if inputs are no texts.

    """
    if task.vocabulary is None:
        raise PlanError(
            f"the model {model} takes texts, and this data set holds numbers of shape "
            f"{task.shape}: choose a model for images or mlp"
        )
    return task.vocabulary
