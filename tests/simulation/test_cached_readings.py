from dataclasses import replace

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.defenses.rand_aug import RandAug
from overheard.simulation.auxiliary_logits import AuxiliaryLogits
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import run_simulation
from tests.simulation.small_run import CountingCache, Raw, blobs, knowledge, server_view

BOTH = (LastLayerChange(), AuxiliaryLogits())
ROUNDS = (0, 1)


def read(attacker, probes=BOTH, rounds=ROUNDS, members=None):
    return run_simulation(server_view(), attacker, rounds, probes, cohort_size=members).readings


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(one[key].equal(other[key]) for key in one)


@pytest.mark.parametrize("members", [None, 3])
def test_missing_readings_are_computed_again_bit_for_bit(members) -> None:
    cache = CountingCache()
    attacker = knowledge(shelf=cache)
    complete = read(attacker, members=members)
    for key in cache.saved[1::3]:
        cache.entries.pop(key)
    saved = len(cache.saved)
    assert same(read(attacker, members=members), complete)
    assert cache.saved[saved:] == cache.saved[1:saved:3]


def test_a_cluster_is_not_used_if_all_readings_are_cached() -> None:
    cache = CountingCache()
    attacker = knowledge(shelf=cache)
    complete = read(attacker)
    on_cluster = replace(
        attacker, compute=replace(attacker.compute, cluster="ray://127.0.0.1:1")
    )
    assert same(read(on_cluster), complete)
    cache.entries.pop(cache.saved[-1])
    with pytest.raises(PlanError, match="does not respond"):
        read(on_cluster)


def test_a_later_probe_reads_the_same_clients() -> None:
    cache = CountingCache()
    read(knowledge(shelf=cache), [AuxiliaryLogits()])
    later = read(knowledge(shelf=cache), [AuxiliaryLogits(), Raw()])
    assert same(later, read(knowledge(), [AuxiliaryLogits(), Raw()]))


def test_another_round_adds_only_its_own_readings() -> None:
    cache = CountingCache()
    first = read(knowledge(shelf=cache), rounds=(0,))
    saved = len(cache.saved)
    both = read(knowledge(shelf=cache))
    assert len(cache.saved) - saved == 2 * 6
    assert all(both[probe][:, :1].equal(first[probe]) for probe in BOTH)


def test_rounds_are_in_the_requested_order() -> None:
    forth, back = (read(knowledge(), [Raw()], rounds)[Raw()] for rounds in ((0, 1), (1, 0)))
    assert forth.equal(back.flip(1))
    assert not forth.equal(back)


def test_requesting_more_clients_keeps_the_first_ones() -> None:
    # Whole chunks, as the number of clients per chunk affects the last bits.
    few, many = (read(knowledge(virtual=n), [Raw()])[Raw()] for n in (32, 64))
    assert many[:32].equal(few)
    assert not many[32:].equal(few)


def test_readings_before_a_ctrl_c_are_cached() -> None:
    cache = CountingCache()

    def interrupt(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    attacker = knowledge(shelf=cache)
    means = replace(attacker.compute, on_progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        read(replace(attacker, compute=means))
    assert len(cache.saved) == 1 + 2 * 6
    assert same(read(attacker), read(knowledge()))
    assert len(cache.saved) == 1 + 4 * 6


def test_refuses_a_probe_with_a_wrong_number_of_readings(monkeypatch) -> None:
    monkeypatch.setattr(Raw, "read", lambda self, scene, deltas: torch.zeros(1, 2))
    with pytest.raises(ValueError, match=r"Raw\(\) returned 1 readings for 32 clients"):
        read(knowledge(), [Raw()])


@pytest.mark.slow
def test_virtual_clients_use_the_background_only_through_known_defenses() -> None:
    attacker = replace(knowledge(), defenses=(RandAug(1.0),))
    one, other = (read(replace(attacker, background=blobs(40, seed=s))) for s in (8, 9))
    assert not same(one, other)
    assert not same(one, read(knowledge()))
    # An attacker who knows of no defense does not use it.
    assert same(read(replace(knowledge(), background=blobs(40))), read(knowledge()))
    with pytest.raises(PlanError, match=r"rand_aug.* virtual/\d+, .*set data.background"):
        read(attacker)
