"""Re-identification by the metadata of updates."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Message
from overheard.core.parties import SERVER, client, shadow_device
from overheard.core.seeds import Seed
from overheard.learning.initialization import initial_weights
from overheard.questions.identity.attacks.metadata import Metadata
from overheard.testing.planted_labels import CLASSES, COMPUTE, RECIPE, blobs, build
from tests.runs.planted_users import make_message, make_prior, make_view, pseudonym, user

USERS = 12
ROUNDS = 3
SHADOWS = Metadata(updates="shadow")

SIZES = tuple(20 + 17 * number for number in range(USERS))
EQUAL_SIZES = (30,) * USERS
LOSSES = tuple(float(number) for number in range(USERS))
NO_LOSSES = (0.0,) * USERS


def noise(*place: str | int) -> float:
    return 0.2 * float(torch.randn((), generator=Seed(3).child(*place).generator()))


def run(sizes: Sequence[int | None], losses: Sequence[float], name: str = "loss"):
    """Devices and pseudonyms of all users reply; losses fall by 1 in each round."""
    return make_view(
        *(
            make_message(
                number,
                who(number, index),
                examples=sizes[index],
                metrics={name: losses[index] - number + noise(kind, number, index)},
            )
            for number in range(ROUNDS)
            for kind, who in (
                ("device", lambda _, index: shadow_device(index)),
                ("client", pseudonym),
            )
            for index in range(USERS)
        )
    )


def knowledge(sizes: Sequence[int]) -> Knowledge:
    known_users = KnownUsers(
        {user(index): make_prior(2 * size) for index, size in enumerate(sizes)},
        shadow_devices={shadow_device(index): user(index) for index in range(USERS)},
    )
    return Knowledge(2, facts=Facts(known_users))


TARGETS = {pseudonym(n, index): index for n in range(ROUNDS) for index in range(USERS)}


def top_1(view, known: Knowledge, attack: Metadata = SHADOWS) -> float:
    """Return the share of targets named correctly, ties at random."""
    claims = attack.infer(view, tuple(TARGETS), known, Seed(0))
    right = 0.0
    for target, index in TARGETS.items():
        best = claims[target].scores == claims[target].scores.max()
        right += float(best[index]) / int(best.sum())
    return right / len(TARGETS)


class TestMetadata:
    def test_names_users_by_sizes_for_an_unknown_private_share(self):
        # Priors are twice as large, which the attacker does not know.
        assert top_1(run(SIZES, NO_LOSSES), knowledge(SIZES)) > 0.8

    def test_names_users_by_losses(self):
        assert top_1(run((None,) * USERS, LOSSES), knowledge(EQUAL_SIZES)) > 0.8

    def test_is_at_chance_if_metadata_differ_only_by_noise(self):
        # 1 / 12 = 0.083; of 36 targets one standard error is 0.046.
        assert top_1(run(EQUAL_SIZES, NO_LOSSES), knowledge(EQUAL_SIZES)) < 0.2

    def test_gives_all_users_equal_scores_if_metadata_are_equal(self):
        view = make_view(
            *(
                make_message(0, who, examples=30, metrics={"loss": 1.0})
                for index in range(USERS)
                for who in (shadow_device(index), pseudonym(0, index))
            )
        )
        target = pseudonym(0, 3)
        claim = SHADOWS.infer(view, (target,), knowledge(EQUAL_SIZES), Seed(0))[target]
        assert claim.numbers() == pytest.approx([0] * USERS)

    def test_a_single_update_favours_priors_of_its_size(self):
        view = make_view(
            make_message(0, shadow_device(0), examples=1),
            make_message(0, client(0), examples=2 * SIZES[-1]),
        )
        claim = SHADOWS.infer(view, (client(0),), knowledge(SIZES), Seed(0))[client(0)]
        assert int(claim.scores.argmax()) > USERS // 2
        assert float(claim.scores.exp().max()) < 3

    def test_uses_only_the_numbers_that_an_update_has(self):
        whole = run(SIZES, LOSSES)
        without_numbers = pseudonym(0, 5)
        # One update without numbers and one without a loss do not affect the others.
        view = replace(
            whole,
            messages=tuple(
                make_message(m.round, m.sender)
                if m.sender == without_numbers
                else make_message(m.round, m.sender, examples=m.body.examples)
                if m.sender == pseudonym(1, 7)
                else m
                for m in whole.messages
            ),
        )
        targets = (without_numbers, pseudonym(1, 7), pseudonym(2, 7))
        claims = SHADOWS.infer(view, targets, knowledge(SIZES), Seed(0))
        assert claims[without_numbers].numbers() == (0,) * USERS
        assert [int(claims[who].scores.argmax()) for who in targets[1:]] == [7, 7]

    def test_reads_the_order_of_replies_if_enabled(self):
        order = torch.randperm(USERS, generator=Seed(1).generator()).tolist()
        view = make_view(
            *(
                make_message(number, who(index))
                for number in range(ROUNDS)
                for who in (
                    shadow_device,
                    lambda index, number=number: pseudonym(number, index),
                )
                for index in order
            )
        )
        known = knowledge(EQUAL_SIZES)
        assert top_1(view, known, replace(SHADOWS, order=True)) > 0.8
        with pytest.raises(NeedsError, match="sent in clear text"):
            top_1(view, known)

    def test_needs_metadata_in_the_clear(self):
        view = make_view(*(make_message(0, who) for who in (shadow_device(0), client(0))))
        with pytest.raises(NeedsError, match="example counts or metrics"):
            SHADOWS.infer(view, (client(0),), knowledge(SIZES), Seed(0))


class TestMetadataSimulated:
    def test_names_users_by_simulated_losses_and_sizes(self):
        # Each user has as many private examples as prior ones, of the same kind.
        counts = [(6 + 4 * index,) * CLASSES for index in range(5)]
        priors = {user(index): blobs(mine, Seed(index)) for index, mine in enumerate(counts)}
        start = dict(initial_weights(build, Seed(3)))
        view = make_view(
            Message(0, SERVER, frozenset({client(0)}), Broadcast(start)),
            *(
                make_message(0, client(index), examples=sum(mine), metrics={"loss": 1.0})
                for index, mine in enumerate(counts)
            ),
        )
        known_users = KnownUsers(priors)
        known = Knowledge(
            CLASSES, build, None, RECIPE, compute=COMPUTE, facts=Facts(known_users)
        )
        targets = tuple(client(index) for index in range(5))
        claims = Metadata().infer(view, targets, known, Seed(0))
        assert [int(claims[who].scores.argmax()) for who in targets] == [0, 1, 2, 3, 4]
