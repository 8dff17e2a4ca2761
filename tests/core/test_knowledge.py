"""What an attacker may know."""

import pytest

from overheard.core.knowledge import Knowledge


@pytest.mark.parametrize("classes", [1, 0, -1])
def test_refuses_fewer_than_two_labels(classes: int):
    with pytest.raises(ValueError, match="2 classes or more"):
        Knowledge(classes)


def test_a_task_without_classes_counts_all_examples_as_alike():
    known = Knowledge(classes=1, kind="regression")
    assert not known.has_classes
    with pytest.raises(ValueError, match="has no classes, got 2"):
        Knowledge(classes=2, kind="multi_label")
