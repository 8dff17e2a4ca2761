"""Updates are linked by their metadata."""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Message, Timestamps, Update
from overheard.core.parties import NETWORK, SERVER, client, shadow_device
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.questions.same_sender.attacks.metadata_link import (
    RECOUNT_PROBABILITY,
    MetadataLink,
)
from tests.questions.identity.attacks.test_metadata import (
    EQUAL_SIZES,
    LOSSES,
    NO_LOSSES,
    ROUNDS,
    SIZES,
    USERS,
    run,
)
from tests.runs.planted_users import make_message, make_prior, make_view, pseudonym

DEFAULT = MetadataLink()
NOTHING = Knowledge(2)
A, B, C = (client(number) for number in range(3))


def crowd(sizes: Sequence[int | None], losses: Sequence[float]):
    """Return the view of `run` with pseudonyms only."""
    view = run(sizes, losses)
    messages = tuple(m for m in view.messages if m.sender.startswith("anon"))
    return replace(view, messages=messages)


def pair_auc(view, attack=DEFAULT) -> float:
    """Return the area under the ROC curve of all pairs."""
    same, other = [], []
    targets = [pseudonym(n, own) for n in range(ROUNDS) for own in range(USERS)]
    for target, claim in attack.infer(view, targets, NOTHING, Seed(0)).items():
        for other_target, score in zip(claim.others, claim.scores.tolist(), strict=True):
            is_same = other_target.split("-")[1] == target.split("-")[1]
            (same if is_same else other).append(score)
    pairs = torch.tensor(same)[:, None] - torch.tensor(other)
    return float((pairs > 0).float().mean() + (pairs == 0).float().mean() / 2)


def link(*messages, attack=DEFAULT, target=A, knowledge=NOTHING):
    """Return the claim on the sender of one of these messages."""
    return attack.infer(make_view(*messages), (target,), knowledge, Seed(0))[target]


class TestMetadataLink:
    def test_numbers_of_examples_link_updates(self):
        assert pair_auc(crowd(SIZES, NO_LOSSES)) == 1

    def test_losses_link_updates(self):
        view = crowd((None,) * USERS, LOSSES)
        assert pair_auc(view) > 0.8
        # These losses hardly change between rounds.
        assert pair_auc(view, MetadataLink(lasting=0.95)) > 0.95

    def test_links_nothing_if_metadata_differ_only_by_noise(self):
        # 36 pairs of one sender: a standard error of 0.29 / 6 = 0.05.
        assert abs(pair_auc(crowd(EQUAL_SIZES, NO_LOSSES)) - 0.5) < 0.12

    def test_rare_numbers_of_examples_are_stronger_evidence(self):
        # Of 4 updates, 3 report 10 examples and 1 reports 20.
        claim = link(
            make_message(0, A, examples=10),
            make_message(1, B, examples=10),
            make_message(2, C, examples=10),
            make_message(3, client(3), examples=20),
        )
        assert claim.others == (B, C, client(3))
        equal = log(((1 - RECOUNT_PROBABILITY) + RECOUNT_PROBABILITY * 3 / 4) / (3 / 4))
        assert claim.numbers() == pytest.approx([equal, equal, log(RECOUNT_PROBABILITY)])

    def test_metrics_are_compared_as_correlated_normal_numbers(self):
        # Centred by the round's mean: -1 and 1, deviation 1: x = y = -1 and x = -1, y = 1.
        # rho = 1/2: -ln(3/4) / 2 - (2/4 -+ 1) / (2 * 3/4) = 0.1438 -+ ...
        claim = link(
            *(
                make_message(number, who, metrics={"loss": loss})
                for number, own in ((0, (A, B)), (1, (C, client(3))))
                for who, loss in zip(own, (1.0, 3.0), strict=True)
            )
        )
        base = -log(3 / 4) / 2
        assert claim.others == (C, client(3))
        assert claim.numbers() == pytest.approx([base + 0.5 / 1.5, base - 1.5 / 1.5])

    def test_averages_over_pairs_of_senders_with_several_updates(self):
        claim = link(
            make_message(0, A, examples=10),
            make_message(1, B, examples=10),
            make_message(2, B, examples=20),
            make_message(3, C, examples=10),
        )
        equal, different = claim.scores[1], log(RECOUNT_PROBABILITY)
        assert float(claim.scores[0]) == pytest.approx((float(equal) + different) / 2)

    def test_compares_with_all_senders_of_other_rounds_except_shadow_devices(self):
        known_users = KnownUsers(
            {"ann": make_prior(1)}, shadow_devices={shadow_device(0): "ann"}
        )
        claim = link(
            *(make_message(0, who, examples=1) for who in (A, B)),
            *(make_message(1, who, examples=1) for who in (C, shadow_device(0))),
            knowledge=Knowledge(2, facts=Facts(known_users)),
        )
        assert claim.others == (C,)

    def test_hidden_metadata_are_no_evidence(self):
        claim = link(
            make_message(0, A, examples=1),
            make_message(1, B),
            make_message(2, C, examples=1, metrics={"loss": 1.0}),
            target=B,
        )
        assert claim.numbers() == (0, 0)

    def test_ignores_metrics_without_correlation(self):
        view = crowd((None,) * USERS, LOSSES)
        target = pseudonym(0, 0)
        claim = MetadataLink(lasting=0.0).infer(view, (target,), NOTHING, Seed(0))[target]
        assert claim.numbers() == pytest.approx([0] * len(claim.others))

    @pytest.mark.parametrize(
        ("messages", "words"),
        [
            (
                [make_message(n, who, examples=1) for n in range(2) for who in (A, B)],
                "pseudonyms",
            ),
            ([make_message(0, A, examples=1)], "other rounds"),
            ([make_message(0, A), make_message(1, B)], "unencrypted"),
        ],
    )
    def test_refuses_lasting_pseudonyms_a_single_message_and_none_with_metadata(
        self, messages, words
    ):
        with pytest.raises(NeedsError, match=words):
            link(*messages)


class TestNetwork:
    """The network links encrypted messages without reading any."""

    def test_response_times_link_messages(self):
        """Sender k answers after about 2^k seconds, in every round."""
        assert pair_auc(network_view(tuple(2.0**own for own in range(USERS)))) > 0.8

    def test_equal_sizes_and_times_link_nothing(self):
        assert pair_auc(network_view((1.0,) * USERS)) == 0.5

    def test_without_a_clock_and_with_equal_sizes_nothing_is_linked(self):
        assert pair_auc(network_view((None,) * USERS)) == 0.5


def network_view(seconds: Sequence[float | None]):
    """What the network sees: a reply takes its sender's seconds, times 0.9..1.1 at random."""
    draws, messages = torch.Generator().manual_seed(0), []
    for number in range(ROUNDS):
        start = 1000.0 * number
        body = Broadcast({"w": torch.zeros(3)})
        began = Timestamps(start, start)
        messages.append(Message(number, SERVER, frozenset({client(0)}), body, began))
        for own, taken in enumerate(seconds):
            wobble = 0.9 + 0.2 * float(torch.rand((), generator=draws))
            if len(set(seconds)) == 1:
                wobble = 1.0
            times = None if taken is None else Timestamps(None, start + taken * wobble)
            reply = Update({"w": torch.ones(3)}, examples=own, metrics={"loss": float(own)})
            sender = pseudonym(number, own)
            messages.append(Message(number, sender, frozenset({SERVER}), reply, times))
    return Transcript(tuple(messages)).seen_by(NETWORK)
