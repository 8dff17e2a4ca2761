from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.simulation.ground import ground_of
from tests.simulation.world import blobs, knowledge, run


@pytest.mark.parametrize("rounds", [(), (0, 0), (0, 7)], ids=["none", "twice", "unheard"])
def test_refuses_rounds_that_cannot_be_imitated(rounds) -> None:
    with pytest.raises(ValueError, match="with a broadcast each"):
        ground_of(run(), knowledge(), rounds)


@pytest.mark.parametrize("lacking", ["auxiliary", "build_model", "recipe"])
def test_says_what_virtual_clients_need(lacking: str) -> None:
    with pytest.raises(
        NeedsError, match=r"auxiliary examples.*architecture.*how clients train"
    ):
        ground_of(run(), replace(knowledge(), **{lacking: None}), (0,))


def test_a_scene_holds_out_what_no_half_learns_from() -> None:
    auxiliary = blobs(20)
    ground = ground_of(run(), knowledge(auxiliary=auxiliary), (1,))
    scene = ground.scene(1)
    # A fifth of 20 of each class.
    assert scene.held_out.counts(3).tolist() == [4, 4, 4]
    assert scene.auxiliary is auxiliary
    learned = set(ground.parting.halves[0].tolist() + ground.parting.halves[1].tolist())
    assert not learned & set(ground.parting.held_out.tolist())


def test_each_round_has_draws_of_its_own() -> None:
    ground = ground_of(run(), knowledge(), (0, 1))
    assert ground.scene(0).seed != ground.scene(1).seed


def test_refuses_a_model_that_tells_another_number_of_classes_than_the_task_has() -> None:
    with pytest.raises(NeedsError, match="tells 3 classes apart and the task has 4"):
        ground_of(run(), replace(knowledge(), classes=4), (0,))
