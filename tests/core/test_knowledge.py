"""What an attacker may know."""

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers


def labelled(*labels: int) -> Examples:
    return Examples(torch.zeros(len(labels), 1), torch.tensor(labels, dtype=torch.long))


def test_auxiliary_shares_are_what_one_who_hears_nothing_may_expect():
    # two of label 0, none of 1, two of 2
    shares = Knowledge(3, auxiliary=labelled(0, 2, 2, 0)).auxiliary_shares()
    assert shares is not None
    assert shares.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("auxiliary", [None, labelled()])
def test_without_auxiliary_examples_there_is_nothing_to_expect(auxiliary: Examples | None):
    assert Knowledge(3, auxiliary=auxiliary).auxiliary_shares() is None


@pytest.mark.parametrize("classes", [1, 0, -1])
def test_refuses_a_task_without_a_choice(classes: int):
    with pytest.raises(ValueError, match="2 labels or more"):
        Knowledge(classes)


def test_no_defenses_and_unknown_defenses_are_different_things():
    assert Knowledge(2).defenses is None
    assert Knowledge(2, defenses=()).defenses == ()


def test_nobody_is_known_and_nothing_is_public_unless_it_is_told():
    assert Knowledge(2).people == KnownUsers()
    assert Knowledge(2).people.examples() == {}
    assert Knowledge(2).background is None
