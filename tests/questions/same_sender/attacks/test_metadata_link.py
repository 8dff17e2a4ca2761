"""Which updates are of one sender, by what they say of themselves."""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.parties import client, shadow
from overheard.core.seeds import Seed
from overheard.questions.same_sender.attacks.metadata_link import RECOUNT, MetadataLink
from tests.questions.identity.attacks.test_metadata import (
    ALIKE,
    LOSSES,
    NO_LOSSES,
    ROUNDS,
    SIZES,
    USERS,
    run,
)
from tests.worlds.planted_crowd import heard, prior, pseudonym, said

DEFAULT = MetadataLink()
NOTHING = Knowledge(2)
A, B, C = (client(number) for number in range(3))


def crowd(sizes: Sequence[int | None], losses: Sequence[float]):
    """The pseudonyms of `run` alone."""
    view = run(sizes, losses)
    mine = tuple(m for m in view.messages if m.sender.startswith("anon"))
    return replace(view, messages=mine)


def chance_that_same_is_above_other(view, attack=DEFAULT) -> float:
    """The area under the ROC curve of all pairs."""
    same, other = [], []
    targets = [pseudonym(n, own) for n in range(ROUNDS) for own in range(USERS)]
    for target, claim in attack.infer(view, targets, NOTHING, Seed(0)).items():
        for who, score in zip(claim.others, claim.scores.tolist(), strict=True):
            is_same = who.split("-")[1] == target.split("-")[1]
            (same if is_same else other).append(score)
    pairs = torch.tensor(same)[:, None] - torch.tensor(other)
    return float((pairs > 0).float().mean() + (pairs == 0).float().mean() / 2)


class TestMetadataLink:
    def test_numbers_of_examples_link_updates(self):
        assert chance_that_same_is_above_other(crowd(SIZES, NO_LOSSES)) == 1

    def test_losses_link_updates(self):
        view = crowd((None,) * USERS, LOSSES)
        assert chance_that_same_is_above_other(view) > 0.8
        # Next to nothing of these losses is fleeting.
        assert chance_that_same_is_above_other(view, MetadataLink(lasting=0.95)) > 0.95

    def test_links_nothing_where_all_tell_the_same_but_for_noise(self):
        # 36 pairs of one sender: a standard error of 0.29 / 6 = 0.05.
        assert abs(chance_that_same_is_above_other(crowd(ALIKE, NO_LOSSES)) - 0.5) < 0.12

    def test_the_rarer_a_number_the_stronger_it_links(self):
        # Of 4 updates 3 tell 10, and 1 tells 20.
        view = heard(
            said(0, A, examples=10),
            said(1, B, examples=10),
            said(2, C, examples=10),
            said(3, client(3), examples=20),
        )
        claim = MetadataLink().infer(view, (A,), NOTHING, Seed(0))[A]
        assert claim.others == (B, C, client(3))
        alike = log(((1 - RECOUNT) + RECOUNT * 3 / 4) / (3 / 4))
        assert claim.numbers() == pytest.approx([alike, alike, log(RECOUNT)])

    def test_a_metric_is_weighed_as_two_correlated_normal_numbers(self):
        # Less the mean of the round -1 and 1, spread 1: x = y = -1 and x = -1, y = 1.
        # rho = 1/2: -ln(3/4) / 2 - (2/4 -+ 1) / (2 * 3/4) = 0.1438 -+ ...
        view = heard(
            *(
                said(number, who, metrics={"loss": loss})
                for number, own in ((0, (A, B)), (1, (C, client(3))))
                for who, loss in zip(own, (1.0, 3.0), strict=True)
            )
        )
        claim = MetadataLink().infer(view, (A,), NOTHING, Seed(0))[A]
        base = -log(3 / 4) / 2
        assert claim.others == (C, client(3))
        assert claim.numbers() == pytest.approx([base + 0.5 / 1.5, base - 1.5 / 1.5])

    def test_takes_the_mean_over_pairs_of_senders_with_several_updates(self):
        view = heard(
            said(0, A, examples=10),
            said(1, B, examples=10),
            said(2, B, examples=20),
            said(3, C, examples=10),
        )
        claim = MetadataLink().infer(view, (A,), NOTHING, Seed(0))[A]
        alike, unlike = claim.scores[1], log(RECOUNT)
        assert float(claim.scores[0]) == pytest.approx((float(alike) + unlike) / 2)

    def test_compares_with_everyone_heard_in_other_rounds_but_devices(self):
        people = KnownUsers({"ann": prior(1)}, devices={shadow(0): "ann"})
        view = heard(
            said(0, A, examples=1),
            said(0, B, examples=1),
            said(1, C, examples=1),
            said(1, shadow(0), examples=1),
        )
        claim = MetadataLink().infer(view, (A,), Knowledge(2, people=people), Seed(0))[A]
        assert claim.others == (C,)

    def test_hidden_numbers_speak_for_nothing(self):
        view = heard(
            said(0, A, examples=1), said(1, B), said(2, C, examples=1, metrics={"loss": 1.0})
        )
        claim = MetadataLink().infer(view, (B,), NOTHING, Seed(0))[B]
        assert claim.numbers() == (0, 0)

    def test_a_lasting_share_of_0_reads_no_metric(self):
        view = crowd((None,) * USERS, LOSSES)
        target = pseudonym(0, 0)
        claim = MetadataLink(lasting=0.0).infer(view, (target,), NOTHING, Seed(0))[target]
        assert claim.numbers() == pytest.approx([0] * len(claim.others))

    def test_needs_names_that_change(self):
        view = heard(*(said(n, who, examples=1) for n in range(2) for who in (A, B)))
        with pytest.raises(NeedsError, match="pseudonyms"):
            MetadataLink().infer(view, (A,), NOTHING, Seed(0))

    def test_needs_more_than_one_message(self):
        with pytest.raises(NeedsError, match="other rounds"):
            MetadataLink().infer(heard(said(0, A, examples=1)), (A,), NOTHING, Seed(0))

    def test_needs_something_told_in_clear(self):
        with pytest.raises(NeedsError, match="told in clear"):
            MetadataLink().infer(heard(said(0, A), said(1, B)), (A,), NOTHING, Seed(0))

    def test_refuses_a_share_that_is_none(self):
        with pytest.raises(ValueError, match="lasting"):
            MetadataLink(lasting=1.0)
