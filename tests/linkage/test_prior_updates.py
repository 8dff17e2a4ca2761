from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.known_users import KnownUsers
from overheard.core.parties import SERVER, Party, shadow_device
from overheard.core.view import View
from overheard.linkage.prior_updates import known_updates, sent_updates
from tests.linkage.peopled import DEVICES, heard, knowing, people, priors, sent
from tests.simulation.small_run import CountingCache

DIMS = 5 * 3 + 3
"""Numbers in the last layer: five features, three classes, and the bias."""

ANN, BEN = Party("anon/0-0"), Party("anon/1-1")


class TestSentUpdates:
    def test_reads_the_layer_of_each_update_of_the_senders(self) -> None:
        found = sent_updates(heard(), (BEN, ANN), -1)
        assert found.senders == (BEN, ANN)
        assert found.rounds.tolist() == [1, 0]
        assert found.vectors.equal(torch.tensor([[2.0], [1.0]]).expand(2, DIMS))

    def test_orders_the_rounds_of_a_sender(self) -> None:
        messages = tuple(sent(number, ANN, number) for number in (2, 0, 1))
        found = sent_updates(View(frozenset({SERVER}), messages), (ANN,), "last_bias")
        assert found.rounds.tolist() == [0, 1, 2]
        assert found.vectors[:, 0].tolist() == [0, 1, 2]
        assert {sender: rows.tolist() for sender, rows in found.rows().items()} == {
            ANN: [0, 1, 2]
        }

    def test_all_layers_are_concatenated(self) -> None:
        assert sent_updates(heard(), (ANN,), "all").vectors.shape == (1, 4 * 5 + 5 + DIMS)

    def test_refuses_a_sender_without_updates(self) -> None:
        with pytest.raises(NeedsError, match="no update of anon/9-9 can be read"):
            sent_updates(heard(), (ANN, Party("anon/9-9")), -1)

    @pytest.mark.parametrize("height", [float("nan"), float("inf"), -float("inf")])
    def test_refuses_non_finite_updates_with_sender_and_round(self, height) -> None:
        messages = (sent(0, ANN), sent(3, BEN, height), sent(4, BEN))
        with pytest.raises(NeedsError, match=r"of anon/1-1 in round 3 contain NaN.*recording"):
            sent_updates(View(frozenset({SERVER}), messages), (ANN, BEN), "all")


class TestShadowUpdates:
    def test_are_labelled_with_the_user_of_each_device(self) -> None:
        known = known_updates(heard(), knowing(), "shadow", -1)
        assert known.names == ("ann", "ben", "cid", "dot")
        assert known.named == 3
        assert known.people.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        assert known.rounds.tolist() == [0, 1] * 4
        assert known.vectors[:, 0].tolist() == [-1, -1, -2, -2, -3, -3, -4, -4]
        assert known.chunks.tolist() == [0] * 8

    def test_a_user_whose_device_was_not_sampled_has_no_update(self) -> None:
        view = heard(devices=(shadow_device(0), shadow_device(2)))
        known = known_updates(view, knowing(), "shadow", -1)
        assert set(known.people.tolist()) == {0, 2}
        assert known.names == ("ann", "ben", "cid", "dot")

    def test_refuses_non_finite_updates_of_a_device(self) -> None:
        messages = (*heard().messages, sent(2, shadow_device(1), float("nan")))
        with pytest.raises(NeedsError, match="of shadow/1 in round 2 contain NaN"):
            known_updates(replace(heard(), messages=messages), knowing(), "shadow", -1)

    @pytest.mark.parametrize("devices", [(), tuple(DEVICES)])
    def test_without_updates_of_devices_it_says_what_to_do(self, devices) -> None:
        known = knowing(known=people({})) if devices else knowing()
        with pytest.raises(NeedsError, match=r"shadow_devices = true.*updates = 'simulated'"):
            known_updates(heard(devices=devices), known, "shadow", -1)


class TestSimulatedUpdates:
    def test_have_one_update_per_chunk_and_round(self) -> None:
        known = known_updates(heard(), knowing(), "simulated", -1, chunks=2)
        # cid has one example, hence one chunk.
        assert known.people.tolist() == [0, 0, 1, 1, 2, 3, 3] * 2
        assert known.chunks.tolist() == [0, 1, 0, 1, 0, 0, 1] * 2
        assert known.rounds.tolist() == [0] * 7 + [1] * 7
        assert known.vectors.shape == (14, DIMS)

    def test_do_not_depend_on_the_targets_updates(self) -> None:
        one = known_updates(heard(clients=1), knowing(), "simulated", -1)
        other = known_updates(heard(clients=2), knowing(), "simulated", -1)
        assert one.vectors.equal(other.vectors)

    def test_use_rounds_with_updates_of_real_clients(self) -> None:
        view = heard(rounds=4)
        lonely = tuple(m for m in view.messages if m.round != 2 or m.sender[:4] != "anon")
        known = known_updates(replace(view, messages=lonely), knowing(), "simulated", -1)
        assert set(known.rounds.tolist()) == {0, 1, 3}

    def test_many_rounds_are_sampled_evenly(self) -> None:
        known = known_updates(heard(rounds=5), knowing(), "simulated", -1, most_rounds=3)
        assert sorted(set(known.rounds.tolist())) == [0, 2, 4]

    def test_a_user_without_an_example_has_no_update(self) -> None:
        nothing = Examples(torch.empty(0, 4), torch.empty(0, dtype=torch.long))
        known = known_updates(
            heard(),
            knowing(known=KnownUsers({**priors(), "eve": nothing})),
            "simulated",
            -1,
        )
        assert known.names[4] == "eve"
        assert set(known.people.tolist()) == {0, 1, 2, 3}

    @pytest.mark.parametrize("part", ["build_model", "recipe"])
    def test_says_what_is_missing_and_what_to_do(self, part) -> None:
        known = replace(knowing(), **{part: None})
        with pytest.raises(NeedsError, match=r"grant the attacker .* \(updates = 'shadow'\)"):
            known_updates(heard(), known, "simulated", -1)

    def test_need_a_broadcast(self) -> None:
        without_broadcasts = View(frozenset({SERVER}), (sent(0, ANN),))
        with pytest.raises(NeedsError, match="broadcast"):
            known_updates(without_broadcasts, knowing(), "simulated", -1)

    def test_all_attacks_share_one_training(self) -> None:
        shelf = CountingCache()
        for layer in (-1, "all", "last_bias"):
            known_updates(heard(), knowing(shelf=shelf), "simulated", layer)
        # One job of four clients in each of two rounds.
        assert len(shelf.saved) == 2


@pytest.mark.parametrize("source", ["shadow", "simulated"])
def test_refuses_a_single_known_user(source) -> None:
    alone = KnownUsers({"ann": priors()["ann"]})
    with pytest.raises(NeedsError, match="two users or more"):
        known_updates(heard(), knowing(known=alone), source, -1)


def test_refuses_settings_below_1() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        known_updates(heard(), knowing(), "simulated", -1, chunks=0)
