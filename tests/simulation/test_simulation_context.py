from dataclasses import replace

import pytest
import torch

from overheard.algorithms.scaffold import Scaffold
from overheard.core.errors import NeedsError
from overheard.simulation.simulation import run_simulation
from overheard.simulation.simulation_context import build_context
from tests.simulation.small_run import (
    CountingCache,
    Raw,
    blobs,
    knowledge,
    server_view,
    with_variates,
)


@pytest.mark.parametrize("rounds", [(), (0, 0), (0, 7)], ids=["none", "twice", "no broadcast"])
def test_refuses_rounds_that_cannot_be_simulated(rounds) -> None:
    with pytest.raises(ValueError, match="have a broadcast each"):
        build_context(server_view(), knowledge(), rounds)


@pytest.mark.parametrize("missing", ["auxiliary", "build_model", "recipe"])
def test_says_what_virtual_clients_need(missing: str) -> None:
    with pytest.raises(
        NeedsError, match=r"auxiliary examples.*architecture.*how clients train"
    ):
        build_context(server_view(), replace(knowledge(), **{missing: None}), (0,))


def test_held_out_examples_are_in_no_half() -> None:
    auxiliary = blobs(20)
    context = build_context(server_view(), knowledge(auxiliary=auxiliary), (1,))
    probe_context = context.probe_context(1)
    # A fifth of 20 examples of each class.
    assert probe_context.held_out.label_counts(3).tolist() == [4, 4, 4]
    assert probe_context.auxiliary is auxiliary
    training_rows = set(
        context.auxiliary_split.halves[0].tolist() + context.auxiliary_split.halves[1].tolist()
    )
    assert not training_rows & set(context.auxiliary_split.held_out.tolist())


def test_refuses_a_model_with_another_number_of_classes() -> None:
    with pytest.raises(NeedsError, match="the model has 3 classes, but the task has 4"):
        build_context(server_view(), replace(knowledge(), classes=4), (0,))


def test_virtual_clients_are_corrected_from_the_second_round_on_if_updates_are() -> None:
    known = replace(knowledge(), algorithm=Scaffold())
    assert not build_context(server_view(), known, (0, 1)).is_corrected(1)
    context = build_context(with_variates(server_view()), known, (0, 1))
    assert [context.is_corrected(number) for number in (0, 1)] == [False, True]
    # Of an update without its variate the observer has taken the correction out.
    plain = build_context(with_variates(server_view(), updates=False), known, (0, 1))
    assert not plain.is_corrected(1)


def test_corrected_readings_are_not_taken_for_others() -> None:
    known = replace(knowledge(shelf=CountingCache()), algorithm=Scaffold())
    plain, corrected = (
        run_simulation(view, known, (0, 1), [Raw()]).readings[Raw()]
        for view in (server_view(), with_variates(server_view()))
    )
    assert corrected[:, 0].equal(plain[:, 0])
    assert not torch.allclose(corrected[:, 1], plain[:, 1])
