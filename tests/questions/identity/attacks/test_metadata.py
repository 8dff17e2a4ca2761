"""Who sent an update, by what it says of itself."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from overheard.core.attack import missing_needs
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.messages import Broadcast, Message
from overheard.core.parties import SERVER, client, shadow
from overheard.core.seeds import Seed
from overheard.learning.initial import initial_weights
from overheard.questions.identity.attacks.metadata import Metadata
from overheard.testing.worlds.planted import CLASSES, MEANS, RECIPE, blobs, build
from tests.worlds.planted_crowd import heard, prior, pseudonym, said, user

USERS = 12
ROUNDS = 3
SHADOWS = Metadata(updates="shadow")

SIZES = tuple(20 + 17 * number for number in range(USERS))
ALIKE = (30,) * USERS
LOSSES = tuple(float(number) for number in range(USERS))
NO_LOSSES = (0.0,) * USERS


def noise(*place: str | int) -> float:
    return 0.2 * float(torch.randn((), generator=Seed(3).child(*place).generator()))


def run(sizes: Sequence[int | None], losses: Sequence[float], name: str = "loss"):
    """Devices 0.. and pseudonyms of users 0.. answer; losses fall alike in each round."""
    return heard(
        *(
            said(
                number,
                who(number, own),
                examples=sizes[own],
                metrics={name: losses[own] - number + noise(kind, number, own)},
            )
            for number in range(ROUNDS)
            for kind, who in (("device", lambda _, own: shadow(own)), ("client", pseudonym))
            for own in range(USERS)
        )
    )


def knowledge(sizes: Sequence[int]) -> Knowledge:
    people = KnownUsers(
        {user(own): prior(2 * size) for own, size in enumerate(sizes)},
        devices={shadow(own): user(own) for own in range(USERS)},
    )
    return Knowledge(2, people=people)


TARGETS = {pseudonym(n, own): own for n in range(ROUNDS) for own in range(USERS)}


def top_1(view, known: Knowledge, attack: Metadata = SHADOWS) -> float:
    """Ties are guessed at."""
    claims = attack.infer(view, tuple(TARGETS), known, Seed(0))
    right = 0.0
    for target, own in TARGETS.items():
        best = claims[target].scores == claims[target].scores.max()
        right += float(best[own]) / int(best.sum())
    return right / len(TARGETS)


class TestMetadata:
    def test_numbers_of_examples_tell_who_it_is_whatever_share_is_private(self):
        # Priors hold twice as many, which nobody tells the attacker.
        assert top_1(run(SIZES, NO_LOSSES), knowledge(SIZES)) > 0.8

    def test_losses_tell_who_it_is(self):
        assert top_1(run((None,) * USERS, LOSSES), knowledge(ALIKE)) > 0.8

    def test_any_metric_that_devices_tell_will_do(self):
        assert top_1(run(ALIKE, LOSSES, "seconds"), knowledge(ALIKE)) > 0.8

    def test_is_at_chance_where_all_tell_the_same_but_for_noise(self):
        # 1 / 12 = 0.083; of 36 targets one standard error is 0.046.
        assert top_1(run(ALIKE, NO_LOSSES), knowledge(ALIKE)) < 0.2

    def test_gives_all_users_one_score_where_all_tell_the_same(self):
        view = heard(
            *(
                said(0, who, examples=30, metrics={"loss": 1.0})
                for own in range(USERS)
                for who in (shadow(own), pseudonym(0, own))
            )
        )
        target = pseudonym(0, 3)
        claim = SHADOWS.infer(view, (target,), knowledge(ALIKE), Seed(0))[target]
        assert claim.numbers() == pytest.approx([0] * USERS)

    def test_one_update_in_all_leans_to_priors_of_its_size(self):
        view = heard(said(0, shadow(0), examples=1), said(0, client(0), examples=2 * SIZES[-1]))
        claim = SHADOWS.infer(view, (client(0),), knowledge(SIZES), Seed(0))[client(0)]
        assert int(claim.scores.argmax()) > USERS // 2
        assert float(claim.scores.exp().max()) < 3

    def test_judges_each_by_what_it_tells(self):
        whole = run(SIZES, LOSSES)
        mute = pseudonym(0, 5)
        # One update without numbers, one without a loss: the others lose nothing by it.
        view = replace(
            whole,
            messages=tuple(
                said(m.round, m.sender)
                if m.sender == mute
                else said(m.round, m.sender, examples=m.body.examples)
                if m.sender == pseudonym(1, 7)
                else m
                for m in whole.messages
            ),
        )
        targets = (mute, pseudonym(1, 7), pseudonym(2, 7))
        claims = SHADOWS.infer(view, targets, knowledge(SIZES), Seed(0))
        assert claims[mute].numbers() == (0,) * USERS
        assert [int(claims[who].scores.argmax()) for who in targets[1:]] == [7, 7]

    def test_rounds_of_one_sender_are_judged_together(self):
        view = run((None,) * USERS, tuple(loss / 10 for loss in LOSSES))
        lasting = replace(
            view,
            messages=tuple(
                replace(m, sender=client(int(m.sender.split("-")[1])))
                if m.sender.startswith("anon")
                else m
                for m in view.messages
            ),
        )
        known = knowledge(ALIKE)
        places = []
        for heard_as, who in ((view, lambda own: pseudonym(0, own)), (lasting, client)):
            targets = tuple(who(own) for own in range(USERS))
            claims = SHADOWS.infer(heard_as, targets, known, Seed(0))
            places.append(
                sum(
                    int((claims[target].scores > claims[target].scores[own]).sum())
                    for own, target in enumerate(targets)
                )
            )
        assert places[1] < places[0]

    def test_reads_the_order_of_replies_where_told_to(self):
        order = torch.randperm(USERS, generator=Seed(1).generator()).tolist()
        view = heard(
            *(
                said(number, who(own))
                for number in range(ROUNDS)
                for who in (shadow, lambda own, number=number: pseudonym(number, own))
                for own in order
            )
        )
        known = knowledge(ALIKE)
        assert top_1(view, known, replace(SHADOWS, order=True)) > 0.8
        with pytest.raises(NeedsError, match="told in clear"):
            top_1(view, known)

    def test_needs_something_told_in_clear(self):
        view = heard(*(said(0, who) for who in (shadow(0), client(0))))
        with pytest.raises(NeedsError, match="example counts or metrics"):
            SHADOWS.infer(view, (client(0),), knowledge(SIZES), Seed(0))

    def test_needs_users(self):
        view = heard(said(0, client(0), examples=1))
        assert missing_needs(Metadata(), view, client(0), Knowledge(2))

    def test_refuses_settings_that_are_none(self):
        with pytest.raises(ValueError, match="pieces"):
            Metadata(pieces=0)


class TestMetadataSimulated:
    def test_losses_and_sizes_of_priors_are_enough(self):
        # Of each user as many private examples as prior ones, of the same kind.
        counts = [(6 + 4 * own,) * CLASSES for own in range(5)]
        priors = {user(own): blobs(mine, Seed(own)) for own, mine in enumerate(counts)}
        start = dict(initial_weights(build, Seed(3)))
        view = heard(
            Message(0, SERVER, frozenset({client(0)}), Broadcast(start)),
            *(
                said(0, client(own), examples=sum(mine), metrics={"loss": 1.0})
                for own, mine in enumerate(counts)
            ),
        )
        people = KnownUsers(priors)
        known = Knowledge(CLASSES, build, None, RECIPE, means=MEANS, people=people)
        targets = tuple(client(own) for own in range(5))
        claims = Metadata().infer(view, targets, known, Seed(0))
        assert [int(claims[who].scores.argmax()) for who in targets] == [0, 1, 2, 3, 4]
