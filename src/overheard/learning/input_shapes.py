"""Input shapes of a task, refused if a network does not support them."""

from math import prod

from overheard.core.errors import PlanError
from overheard.core.task import Task


def input_size(task: Task, model_name: str) -> int:
    """Return how many numbers one input has.

    Raises:
        PlanError: if the inputs are texts.

    """
    if task.vocabulary is not None:
        raise PlanError(
            f"model: {model_name} takes numbers, but the data set holds texts; "
            "choose text_bag, lstm or transformer"
        )
    return prod(task.shape)


def image_shape(task: Task, model_name: str, minimum_side: int) -> tuple[int, int, int]:
    """Return channels, height and width of one input.

    Raises:
        PlanError: if the inputs are not images, or are smaller than `minimum_side` pixels a
            side.

    """
    if task.vocabulary is not None or len(task.shape) != 3:
        alternative = "text_bag, lstm or transformer" if task.vocabulary is not None else "mlp"
        raise PlanError(
            f"model: {model_name} takes images (channels, height, width), but the inputs of "
            f"the data set have shape {task.shape}; choose {alternative}"
        )
    channels, height, width = task.shape
    if min(height, width) < minimum_side:
        raise PlanError(
            f"model: {model_name} takes images of {minimum_side} x {minimum_side} pixels or "
            f"more, but the data set's have {height} x {width}; choose a shallower "
            "model, such as mlp"
        )
    return channels, height, width


def vocabulary_size(task: Task, model_name: str) -> int:
    """Return how many different tokens texts may contain, including padding.

    Raises:
        PlanError: if the inputs are not texts.

    """
    if task.vocabulary is None:
        raise PlanError(
            f"model: {model_name} takes texts, but the data set holds numbers of shape "
            f"{task.shape}; choose mlp or a model for images"
        )
    return task.vocabulary
