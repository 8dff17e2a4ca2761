from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.messages import Update
from overheard.core.parties import SERVER, Party
from overheard.core.view import View
from overheard.linkage.crowd_places import CrowdPlaces, crowd_places, layers_in
from overheard.linkage.prior_updates import known_updates
from overheard.linkage.user_evidence import learn_evidence
from tests.linkage.peopled import DEVICES, heard, knowing


def placed(view: View) -> CrowdPlaces:
    layers = (-1, "all")
    known = {layer: known_updates(view, knowing(), "simulated", layer, 2) for layer in layers}
    return crowd_places(view, DEVICES, learn_evidence(known))


def test_gives_a_place_a_layer_to_each_update_but_those_of_devices() -> None:
    told = placed(heard())
    assert list(told.numbers) == ["anon/0-0", "anon/0-1", "anon/1-0", "anon/1-1"]
    assert told.senders.tolist() == [0, 1, 2, 3]
    assert told.rounds.tolist() == [0, 0, 1, 1]
    assert [len(places) for places in told.places] == [4, 4]
    assert told.number(Party("anon/1-0")) == 2


def test_updates_that_are_the_same_but_for_their_length_lie_in_one_place() -> None:
    # They are 1, and 2, all over.
    for places in placed(heard()).places:
        assert places[0].allclose(places[1], atol=1e-6)


def test_who_was_not_heard_and_devices_are_refused_by_name() -> None:
    for who in ("anon/9-9", "shadow/0"):
        with pytest.raises(NeedsError, match=f"no update can be read of {who}"):
            placed(heard()).number(Party(who))


def test_where_only_devices_answered_nobody_is_told_apart() -> None:
    evidence = learn_evidence({-1: known_updates(heard(), knowing(), "shadow", -1)})
    alone = heard(clients=0)
    with pytest.raises(NeedsError, match="updates of the target"):
        crowd_places(alone, DEVICES, evidence)


def test_layers_are_chosen_by_what_the_model_has() -> None:
    assert layers_in(heard()) == ("last_bias", -1, "all")
    bare = tuple(
        replace(m, body=Update({"out.weight": torch.ones(3, 4)}))
        for m in heard().messages
        if isinstance(m.body, Update)
    )
    assert layers_in(replace(heard(), messages=bare)) == (-1, "all")


def test_without_an_update_no_layers_are_chosen() -> None:
    with pytest.raises(NeedsError, match="updates of the target"):
        layers_in(View(frozenset({SERVER}), ()))
