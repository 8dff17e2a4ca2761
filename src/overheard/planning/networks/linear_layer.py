"""Recordings of a single linear layer, such as those of scikit-learn's linear models."""

from functools import partial

from overheard.core.errors import AuditError
from overheard.core.task import Task
from overheard.learning.initialization import model_structure
from overheard.learning.model import Model
from overheard.learning.models.logistic import BinaryLogistic, Logistic
from overheard.planning.networks.network_difference import refuse_other_network
from overheard.planning.recorded_facts import RecordedFacts


def recorded_linear_layer(recording: RecordedFacts, task: Task) -> Model | None:
    """Return a linear layer with exactly the recorded tensors; None = it is another model.

    scikit-learn's `LogisticRegression` sends `coef_` (classes x columns, or 1 x columns for two
    classes) and `intercept_`.
    """
    shapes = list(recording.shapes.values())
    if len(shapes) != 2 or sorted(map(len, shapes)) != [1, 2]:
        return None
    candidates: tuple[Model, ...] = (Logistic(), BinaryLogistic())
    for model in candidates:
        try:
            refuse_other_network(model_structure(partial(model.build, task)), recording)
        except AuditError:
            continue
        return model
    return None
