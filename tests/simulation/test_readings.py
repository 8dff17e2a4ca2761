from dataclasses import replace

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.means import Means
from overheard.defenses.rand_aug import RandAug
from overheard.simulation.answers import Answers
from overheard.simulation.bank import build_bank
from overheard.simulation.last_layer_change import LastLayerChange
from tests.simulation.world import Raw, Spy, blobs, knowledge, run

BOTH = (LastLayerChange(), Answers())
ROUNDS = (0, 1)


def read(known, probes=BOTH, rounds=ROUNDS, members=None):
    return build_bank(run(), known, rounds, probes, members=members).read


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(one[key].equal(other[key]) for key in one)


@pytest.mark.parametrize("members", [None, 3])
def test_a_shelf_that_lost_some_gives_the_same_bits(members) -> None:
    shelf = Spy()
    known = knowledge(shelf=shelf)
    whole = read(known, members=members)
    for lost in shelf.saved[1::3]:
        shelf.kept.pop(lost)
    saved = len(shelf.saved)
    assert same(read(known, members=members), whole)
    assert shelf.saved[saved:] == shelf.saved[1:saved:3]


def test_nothing_is_trained_that_was_read_before() -> None:
    shelf = Spy()
    read(knowledge(shelf=shelf))
    saved = list(shelf.saved)
    # Two chunks of forty clients, two rounds, four probes; and what the clients hold.
    assert len(saved) == 2 * 2 * 4 + 1
    read(knowledge(shelf=shelf))
    assert shelf.saved == saved


def test_a_cluster_is_not_called_where_nothing_is_left_to_train() -> None:
    shelf = Spy()
    known = knowledge(shelf=shelf)
    whole = read(known)
    far = replace(known, means=replace(known.means, cluster="ray://127.0.0.1:1"))
    assert same(read(far), whole)
    shelf.kept.pop(shelf.saved[-1])
    with pytest.raises(PlanError, match="does not answer"):
        read(far)


def test_a_probe_that_comes_later_sees_the_same_clients() -> None:
    shelf = Spy()
    read(knowledge(shelf=shelf), [Answers()])
    later = read(knowledge(shelf=shelf), [Answers(), Raw()])
    assert same(later, read(knowledge(), [Answers(), Raw()]))


def test_another_round_adds_itself_alone() -> None:
    shelf = Spy()
    first = read(knowledge(shelf=shelf), rounds=(0,))
    saved = len(shelf.saved)
    both = read(knowledge(shelf=shelf))
    assert len(shelf.saved) - saved == 2 * 4
    assert all(both[probe][:, :1].equal(first[probe]) for probe in BOTH)


def test_rounds_stand_in_the_order_asked_for() -> None:
    forth, back = (read(knowledge(), [Raw()], rounds)[Raw()] for rounds in ((0, 1), (1, 0)))
    assert forth.equal(back.flip(1))
    assert not forth.equal(back)


def test_more_clients_are_the_same_ones_and_others() -> None:
    # Whole chunks: how many train at once moves the last bits.
    few, many = (read(knowledge(virtual=n), [Raw()])[Raw()] for n in (32, 64))
    assert many[:32].equal(few)
    assert not many[32:].equal(few)


def test_every_piece_is_told_of_whether_it_was_trained_or_found() -> None:
    told: list[tuple[str, int, int]] = []
    shelf = Spy()

    def hear(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    means = Means(virtual_clients=40, shelf=shelf, workers=1, on_progress=hear)
    known = replace(knowledge(), means=means)
    expected = [("virtual clients", done, 4) for done in (1, 2, 3, 4)]
    read(known)
    assert told == expected
    told.clear()
    shelf.kept.pop(shelf.saved[-1])
    read(known)
    assert told == expected


def test_what_was_read_before_a_ctrl_c_is_kept_and_the_rest_read_later() -> None:
    shelf = Spy()

    def interrupt(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    known = knowledge(shelf=shelf)
    means = replace(known.means, on_progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        read(replace(known, means=means))
    assert len(shelf.saved) == 1 + 2 * 4
    assert same(read(known), read(knowledge()))
    assert len(shelf.saved) == 1 + 4 * 4


def test_a_probe_that_miscounts_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(Raw, "read", lambda self, scene, deltas: torch.zeros(1, 2))
    with pytest.raises(ValueError, match=r"Raw\(\) gave 1 readings of 32 clients"):
        read(knowledge(), [Raw()])


@pytest.mark.slow
def test_virtual_clients_meet_the_background_through_the_defenses_that_are_known() -> None:
    known = replace(knowledge(), defenses=(RandAug(1.0),))
    one, other = (read(replace(known, background=blobs(40, seed=s))) for s in (8, 9))
    assert not same(one, other)
    assert not same(one, read(knowledge()))
    # An attacker who knows of no defense has no use for it.
    assert same(read(replace(knowledge(), background=blobs(40))), read(knowledge()))
    with pytest.raises(PlanError, match=r"rand_aug .* virtual/\d+, .*give data.background"):
        read(known)
