"""A source that has only the meaning of labels."""

import pytest

from overheard.core.errors import DataError, PlanError
from overheard.core.seeds import Seed
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.partition.data_partition import AuxiliarySize, draw_partition
from overheard.data.partition.schedule import Schedule


def test_tells_classes_and_shape():
    task = NoExamples(("a", "b", "c"), (1, 8, 8)).load(None).task
    assert (task.class_names, task.shape) == (("a", "b", "c"), (1, 8, 8))


def test_nothing_can_be_drawn_from_it():
    dataset, schedule = NoExamples(("a", "b")).load(None), Schedule(1, None, ())
    with pytest.raises(PlanError):
        draw_partition(
            dataset,
            None,
            clients=1,
            auxiliary=AuxiliarySize(per_class=1),
            test=None,
            schedule=schedule,
            seed=Seed(0),
        )


def test_refuses_a_single_class():
    with pytest.raises(DataError, match="2 classes or more"):
        NoExamples(("a",)).load(None)


def test_a_task_without_classes_has_one_placeholder():
    dataset = NoExamples(("age",), (3,), task="regression").load(None)
    assert (dataset.task.kind, dataset.task.outputs, len(dataset.train)) == ("regression", 1, 1)
