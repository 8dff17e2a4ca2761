from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import SERVER, Party, shadow_device
from overheard.core.view import View
from overheard.linkage.known_updates import load_known_updates, read_sender_updates
from tests.linkage.four_users import (
    DEVICES,
    make_knowledge,
    make_known_users,
    make_update_message,
    make_view,
    priors,
)
from tests.simulation.small_run import CountingCache

DIMS = 5 * 3 + 3
"""Numbers in the last layer: five features, three classes, and the bias."""

ANN, BEN = Party("anon/0-0"), Party("anon/1-1")


class TestSentUpdates:
    def test_orders_the_rounds_of_a_sender(self) -> None:
        messages = tuple(make_update_message(number, ANN, number) for number in (2, 0, 1))
        found = read_sender_updates(View(frozenset({SERVER}), messages), (ANN,), "last_bias")
        assert found.rounds.tolist() == [0, 1, 2]
        assert found.vectors[:, 0].tolist() == [0, 1, 2]
        assert {sender: rows.tolist() for sender, rows in found.rows_by_sender().items()} == {
            ANN: [0, 1, 2]
        }

    def test_refuses_a_sender_without_updates(self) -> None:
        with pytest.raises(NeedsError, match="no update of anon/9-9 can be read"):
            read_sender_updates(make_view(), (ANN, Party("anon/9-9")), -1)

    @pytest.mark.parametrize("height", [float("nan"), float("inf"), -float("inf")])
    def test_refuses_non_finite_updates_with_sender_and_round(self, height) -> None:
        messages = (
            make_update_message(0, ANN),
            make_update_message(3, BEN, height),
            make_update_message(4, BEN),
        )
        with pytest.raises(NeedsError, match=r"of anon/1-1 in round 3 contain NaN.*recording"):
            read_sender_updates(View(frozenset({SERVER}), messages), (ANN, BEN), "all")


class TestShadowUpdates:
    def test_are_labelled_with_the_user_of_each_device(self) -> None:
        known = load_known_updates(make_view(), make_knowledge(), "shadow", -1)
        assert known.names == ("ann", "ben", "cid", "dot")
        assert known.candidate_count == 3
        assert known.users.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        assert known.rounds.tolist() == [0, 1] * 4
        assert known.vectors[:, 0].tolist() == [-1, -1, -2, -2, -3, -3, -4, -4]
        assert known.chunks.tolist() == [0] * 8

    def test_a_user_whose_device_was_not_sampled_has_no_update(self) -> None:
        view = make_view(devices=(shadow_device(0), shadow_device(2)))
        known = load_known_updates(view, make_knowledge(), "shadow", -1)
        assert set(known.users.tolist()) == {0, 2}
        assert known.names == ("ann", "ben", "cid", "dot")

    def test_refuses_non_finite_updates_of_a_device(self) -> None:
        messages = (
            *make_view().messages,
            make_update_message(2, shadow_device(1), float("nan")),
        )
        with pytest.raises(NeedsError, match="of shadow/1 in round 2 contain NaN"):
            load_known_updates(
                replace(make_view(), messages=messages), make_knowledge(), "shadow", -1
            )

    @pytest.mark.parametrize("devices", [(), tuple(DEVICES)])
    def test_without_updates_of_devices_it_says_what_to_do(self, devices) -> None:
        known = make_knowledge(known=make_known_users({})) if devices else make_knowledge()
        with pytest.raises(NeedsError, match=r"shadow_devices = true.*updates = 'simulated'"):
            load_known_updates(make_view(devices=devices), known, "shadow", -1)


class TestSimulatedUpdates:
    def test_have_one_update_per_chunk_and_round(self) -> None:
        known = load_known_updates(make_view(), make_knowledge(), "simulated", -1, chunks=2)
        # cid has one example, hence one chunk.
        assert known.users.tolist() == [0, 0, 1, 1, 2, 3, 3] * 2
        assert known.chunks.tolist() == [0, 1, 0, 1, 0, 0, 1] * 2
        assert known.rounds.tolist() == [0] * 7 + [1] * 7
        assert known.vectors.shape == (14, DIMS)

    def test_do_not_depend_on_the_targets_updates(self) -> None:
        one = load_known_updates(make_view(clients=1), make_knowledge(), "simulated", -1)
        other = load_known_updates(make_view(clients=2), make_knowledge(), "simulated", -1)
        assert one.vectors.equal(other.vectors)

    def test_use_rounds_with_updates_of_real_clients(self) -> None:
        view = make_view(rounds=4)
        lonely = tuple(m for m in view.messages if m.round != 2 or m.sender[:4] != "anon")
        known = load_known_updates(
            replace(view, messages=lonely), make_knowledge(), "simulated", -1
        )
        assert set(known.rounds.tolist()) == {0, 1, 3}

    def test_a_user_without_an_example_has_no_update(self) -> None:
        nothing = Examples(torch.empty(0, 4), torch.empty(0, dtype=torch.long))
        known = load_known_updates(
            make_view(),
            make_knowledge(known=KnownUsers({**priors(), "eve": nothing})),
            "simulated",
            -1,
        )
        assert known.names[4] == "eve"
        assert set(known.users.tolist()) == {0, 1, 2, 3}

    @pytest.mark.parametrize("part", ["build_model", "recipe"])
    def test_says_what_is_missing_and_what_to_do(self, part) -> None:
        known = replace(make_knowledge(), **{part: None})
        with pytest.raises(NeedsError, match=r"grant the attacker .* \(updates = 'shadow'\)"):
            load_known_updates(make_view(), known, "simulated", -1)

    def test_need_a_broadcast(self) -> None:
        without_broadcasts = View(frozenset({SERVER}), (make_update_message(0, ANN),))
        with pytest.raises(NeedsError, match="broadcast"):
            load_known_updates(without_broadcasts, make_knowledge(), "simulated", -1)

    def test_all_attacks_share_one_training(self) -> None:
        shelf = CountingCache()
        for layer in (-1, "all", "last_bias"):
            load_known_updates(make_view(), make_knowledge(shelf=shelf), "simulated", layer)
        # One job of four clients in each of two rounds.
        assert len(shelf.saved) == 2


@pytest.mark.parametrize("source", ["shadow", "simulated"])
def test_refuses_a_single_known_user(source) -> None:
    alone = KnownUsers({"ann": priors()["ann"]})
    with pytest.raises(NeedsError, match="two users or more"):
        load_known_updates(make_view(), make_knowledge(known=alone), source, -1)


def test_refuses_settings_below_1() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        load_known_updates(make_view(), make_knowledge(), "simulated", -1, chunks=0)
