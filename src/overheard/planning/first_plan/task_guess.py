"""What a recorded model with one output predicts, told by the labels of the data."""

from dataclasses import replace

from overheard.core.custom_code.reference import REFERENCE
from overheard.core.errors import DataError
from overheard.core.recipe import LOSSES_OF_TASKS, LossName, Recipe
from overheard.core.task import Task
from overheard.data.dataset import DataSource
from overheard.data.datasets.custom import Own
from overheard.planning.recorded_facts import RecordedFacts


def with_task_of_labels(
    source: DataSource, recording: RecordedFacts | None, read: tuple[str, ...]
) -> DataSource:
    """Return the source with the task that fits a model of one output.

    Labels of two values are two classes, of which the model puts out the logit of the second.
    All other labels are numbers to predict. Nothing changes if the model has several outputs,
    if the recording or the user states the task, or if a function returns the data.

    Args:
        source: the data.
        recording: the recording; None = there is none.
        read: settings of the data that the user gave, each a line of TOML.

    """
    if not isinstance(source, Own) or REFERENCE.fullmatch(source.reference):
        return source
    if recording is None or recording.manifest.task is not None or recording.outputs != 1:
        return source
    if any(line.partition("=")[0].strip() == "task" for line in read):
        return source
    of_classes = replace(source, task="classification")
    try:
        task = of_classes.load(None).task
    except DataError:
        # Either the labels are too many for classes, or reading them as numbers tells why.
        return replace(source, task="regression")
    is_fitting = task.classes == 2 if task.has_classes else task.outputs == 1
    return of_classes if is_fitting else replace(source, task="regression")


def loss_of_task(task: Task, recipe: Recipe | None) -> LossName:
    """Return the loss of the plan: the recipe's, if it belongs to the task, or the usual one.

    The binary cross-entropy of one logit is the cross-entropy of two classes.
    """
    losses = LOSSES_OF_TASKS[task.kind]
    return losses[0] if recipe is None or recipe.loss not in losses else recipe.loss
