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


def project(view: View) -> CrowdPlaces:
    layers = (-1, "all")
    known = {layer: known_updates(view, knowing(), "simulated", layer, 2) for layer in layers}
    return crowd_places(view, DEVICES, learn_evidence(known))


def test_projects_each_layer_of_all_updates_but_those_of_shadow_devices() -> None:
    projected = project(heard())
    assert list(projected.numbers) == ["anon/0-0", "anon/0-1", "anon/1-0", "anon/1-1"]
    assert projected.senders.tolist() == [0, 1, 2, 3]
    assert projected.rounds.tolist() == [0, 0, 1, 1]
    assert [len(places) for places in projected.places] == [4, 4]
    assert projected.number(Party("anon/1-0")) == 2


def test_projections_do_not_depend_on_the_length_of_updates() -> None:
    # They are 1, and 2, all over.
    for places in project(heard()).places:
        assert places[0].allclose(places[1], atol=1e-6)


def test_refuses_unknown_senders_and_shadow_devices() -> None:
    for sender in ("anon/9-9", "shadow/0"):
        with pytest.raises(NeedsError, match=f"no update of {sender} can be read"):
            project(heard()).number(Party(sender))


def test_refuses_views_with_updates_of_shadow_devices_alone() -> None:
    evidence = learn_evidence({-1: known_updates(heard(), knowing(), "shadow", -1)})
    alone = heard(clients=0)
    with pytest.raises(NeedsError, match="updates of the target"):
        crowd_places(alone, DEVICES, evidence)


def test_default_layers_depend_on_the_model() -> None:
    assert layers_in(heard()) == ("last_bias", -1, "all")
    bare = tuple(
        replace(m, body=Update({"out.weight": torch.ones(3, 4)}))
        for m in heard().messages
        if isinstance(m.body, Update)
    )
    assert layers_in(replace(heard(), messages=bare)) == (-1, "all")


def test_default_layers_need_an_update() -> None:
    with pytest.raises(NeedsError, match="updates of the target"):
        layers_in(View(frozenset({SERVER}), ()))
