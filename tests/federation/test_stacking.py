from dataclasses import replace
from typing import Any

import pytest

from overheard.core.defense import Defense, LocalTraining
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.federation.federation import Federation
from overheard.federation.run import check_stackable, split_into_stacks


class Still(Defense):
    name = "still"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"


class Retrains(Still):
    def on_training(self, training: LocalTraining) -> LocalTraining:
        return training


def of(federation: Federation, clients: int) -> Federation:
    """The federation with only its first clients."""
    return replace(federation, rows=[held[:clients] for held in federation.rows])


@pytest.mark.parametrize(
    ("clients", "most", "cut"),
    [
        # 20 + 10 are 30, and 20 more would be 50.
        ((20, 10, 20), 32, [[0, 1], [2]]),
        ((20, 12, 1), 32, [[0, 1], [2]]),
        ((2, 2, 2, 2, 2), 4, [[0, 1], [2, 3], [4]]),
        # Nobody is parted from the others of a federation, however many they are.
        ((1, 20, 1), 8, [[0], [1], [2]]),
        ((20,), 1, [[0]]),
    ],
)
def test_stacks_hold_whole_federations_up_to_the_number_of_clients(
    crowd: Federation, clients: tuple[int, ...], most: int, cut: list[list[int]]
) -> None:
    federations = [of(crowd, number) for number in clients]
    assert [list(stack) for stack in split_into_stacks(federations, most)] == cut


def test_only_sampled_clients_count(crowd: Federation) -> None:
    # A quarter of 20 clients are 5: six times that fits where twice 20 do not.
    quarter = replace(crowd, participation=0.25)
    assert [len(stack) for stack in split_into_stacks([crowd] * 6, 32)] == [1] * 6
    assert [len(stack) for stack in split_into_stacks([quarter] * 7, 32)] == [6, 1]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"model": "three weights"}, "model"),
        ({"task": Task((1,), ("a", "b", "c"))}, "task"),
        ({"recipe": Recipe(rate=0.5, epochs=1, batch=8)}, "recipe"),
        ({"engine": "stacked"}, "engine"),
        ({"workers": 1}, "workers"),
        ({"device": "cuda"}, "device"),
        ({"defenses": (Retrains(),)}, "defenses of the training"),
    ],
)
def test_refuses_federations_with_different_training(
    small: Federation, changes: dict[str, Any], what: str
) -> None:
    with pytest.raises(ValueError, match=f"federation 2 differs from federation 0 in {what},"):
        check_stackable([small, small, replace(small, **changes)])


def test_refuses_federations_with_different_rounds(small: Federation) -> None:
    with pytest.raises(ValueError, match="in rounds,"):
        check_stackable([small, replace(small, rounds=1, rows=small.rows[:1])])
