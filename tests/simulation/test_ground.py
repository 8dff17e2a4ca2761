from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.simulation.ground import ground_of
from tests.simulation.world import blobs, knowledge, run


@pytest.mark.parametrize("rounds", [(), (0, 0), (0, 7)], ids=["none", "twice", "no broadcast"])
def test_refuses_rounds_that_cannot_be_simulated(rounds) -> None:
    with pytest.raises(ValueError, match="have a broadcast each"):
        ground_of(run(), knowledge(), rounds)


@pytest.mark.parametrize("missing", ["auxiliary", "build_model", "recipe"])
def test_says_what_virtual_clients_need(missing: str) -> None:
    with pytest.raises(
        NeedsError, match=r"auxiliary examples.*architecture.*how clients train"
    ):
        ground_of(run(), replace(knowledge(), **{missing: None}), (0,))


def test_held_out_examples_are_in_no_half() -> None:
    auxiliary = blobs(20)
    context = ground_of(run(), knowledge(auxiliary=auxiliary), (1,))
    probe_context = context.scene(1)
    # A fifth of 20 examples of each class.
    assert probe_context.held_out.label_counts(3).tolist() == [4, 4, 4]
    assert probe_context.auxiliary is auxiliary
    training_rows = set(context.parting.halves[0].tolist() + context.parting.halves[1].tolist())
    assert not training_rows & set(context.parting.held_out.tolist())


def test_each_round_has_its_own_seed() -> None:
    context = ground_of(run(), knowledge(), (0, 1))
    assert context.scene(0).seed != context.scene(1).seed


def test_refuses_a_model_with_another_number_of_classes() -> None:
    with pytest.raises(NeedsError, match="the model has 3 classes, but the task has 4"):
        ground_of(run(), replace(knowledge(), classes=4), (0,))
