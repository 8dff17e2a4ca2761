import pytest

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, Party
from overheard.core.view import View
from overheard.linkage.known_updates import load_known_updates
from overheard.linkage.projected_updates import ProjectedUpdates, project_updates, select_layers
from overheard.linkage.user_evidence import fit_user_evidence
from tests.linkage.four_users import DEVICES, make_knowledge, make_view


def project(view: View) -> ProjectedUpdates:
    layers = (-1, "all")
    known = {
        layer: load_known_updates(view, make_knowledge(), "simulated", layer, 2)
        for layer in layers
    }
    return project_updates(view, DEVICES, fit_user_evidence(known))


def test_projects_each_layer_of_all_updates_but_those_of_shadow_devices() -> None:
    projected = project(make_view())
    assert list(projected.sender_indices) == ["anon/0-0", "anon/0-1", "anon/1-0", "anon/1-1"]
    assert projected.senders.tolist() == [0, 1, 2, 3]
    assert projected.rounds.tolist() == [0, 0, 1, 1]
    assert [len(places) for places in projected.projections] == [4, 4]
    assert projected.index_of(Party("anon/1-0")) == 2


def test_refuses_unknown_senders_and_shadow_devices() -> None:
    for sender in ("anon/9-9", "shadow/0"):
        with pytest.raises(NeedsError, match=f"no update of {sender} can be read"):
            project(make_view()).index_of(Party(sender))


def test_refuses_views_with_updates_of_shadow_devices_alone() -> None:
    evidence = fit_user_evidence(
        {-1: load_known_updates(make_view(), make_knowledge(), "shadow", -1)}
    )
    alone = make_view(clients=0)
    with pytest.raises(NeedsError, match="updates of the target"):
        project_updates(alone, DEVICES, evidence)


def test_default_layers_need_an_update() -> None:
    with pytest.raises(NeedsError, match="updates of the target"):
        select_layers(View(frozenset({SERVER}), ()))
