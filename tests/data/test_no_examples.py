"""A source that has only the meaning of labels."""

import pytest

from overheard.core.errors import DataError
from overheard.data.datasets.no_examples import NoExamples


def test_refuses_a_single_class():
    with pytest.raises(DataError, match="2 classes or more"):
        NoExamples(("a",)).load(None)


def test_a_task_without_classes_has_one_placeholder():
    dataset = NoExamples(("age",), (3,), task="regression").load(None)
    assert (dataset.task.kind, dataset.task.outputs, len(dataset.train)) == ("regression", 1, 1)
