"""What an attacker may know."""

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers


def labelled(*labels: int) -> Examples:
    return Examples(torch.zeros(len(labels), 1), torch.tensor(labels, dtype=torch.long))


def test_auxiliary_shares_are_the_shares_of_the_auxiliary_labels():
    # two of label 0, none of 1, two of 2
    shares = Knowledge(3, auxiliary=labelled(0, 2, 2, 0)).auxiliary_label_shares()
    assert shares is not None
    assert shares.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("auxiliary", [None, labelled()])
def test_without_auxiliary_examples_there_are_no_shares(auxiliary: Examples | None):
    assert Knowledge(3, auxiliary=auxiliary).auxiliary_label_shares() is None


@pytest.mark.parametrize("classes", [1, 0, -1])
def test_refuses_fewer_than_two_labels(classes: int):
    with pytest.raises(ValueError, match="2 classes or more"):
        Knowledge(classes)


def test_no_defenses_differ_from_unknown_defenses():
    assert Knowledge(2).defenses is None
    assert Knowledge(2, defenses=()).defenses == ()


def test_by_default_no_user_and_no_background_is_known():
    assert Knowledge(2).known_users == KnownUsers()
    assert Knowledge(2).known_users.all_prior_examples() == {}
    assert Knowledge(2).background is None


def test_a_task_without_classes_counts_all_examples_as_alike():
    known = Knowledge(classes=1, kind="regression")
    assert not known.has_classes
    with pytest.raises(ValueError, match="has no classes, got 2"):
        Knowledge(classes=2, kind="multi_label")
