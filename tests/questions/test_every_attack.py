"""What every attack must keep to; a new one is found and held to it by itself."""

import inspect
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import pytest
import torch

from overheard.core.attack import check_needs
from overheard.core.claims import Claim
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import DistilledSet
from overheard.core.needs import BROADCASTS, CROSS_ENTROPY
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.plans import kinds
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from tests.worlds.planted import CLASSES, Overheard, hold
from tests.worlds.planted_identity import Peopled
from tests.worlds.planted_membership import Remembered
from tests.worlds.planted_shift import SINCE, SOON, Followed, renumbered

ATTACKS = kinds.ATTACKS.parts()
SCORERS = {scorer.claim: scorer() for scorer in kinds.SCORERS.parts().values()}
TARGETS = tuple(client(number) for number in range(4))
ORDER = torch.tensor([2, 0, 3, 1])
"""New class i is old class ORDER[i]."""

PERSONAL = (Identity, SameSender, Attribute)
"""Questions about the people behind pseudonyms."""

Run = Overheard | Followed | Peopled | Remembered


def that_answer(question: type[Claim]) -> list[str]:
    return [name for name, attack in ATTACKS.items() if attack.answers is question]


@pytest.fixture
def heard(name, request) -> Run:
    """A run that leaks the answer to the attack's question."""
    if ATTACKS[name].answers is Shift:
        return request.getfixturevalue("shifting")[0]
    if ATTACKS[name].answers in PERSONAL:
        return request.getfixturevalue("different")
    if ATTACKS[name].answers is Membership:
        return request.getfixturevalue("by_heart")
    return request.getfixturevalue("leaky")


def targets_of(run: Run) -> tuple[Party, ...]:
    return run.targets if isinstance(run, Peopled) else TARGETS


def claimed_anew(name: str, run: Run, seed: int = 0) -> dict[str, Any]:
    view = run.transcript.seen_by(SERVER)
    return dict(ATTACKS[name]().infer(view, targets_of(run), run.knowledge, Seed(seed)))


claims_of = cache(claimed_anew)
"""What an attack claims about a run, asked once."""


def told(claim: Claim) -> tuple[float, ...]:
    """All that a claim says, as plain numbers."""
    timeline = claim.timeline()
    if timeline is None:
        return claim.numbers()
    assert timeline.since is not None
    return (*claim.numbers(), *timeline.statistic, timeline.since)


def mean_gain(name: str, run: Overheard | Peopled | Remembered) -> float:
    """Of the headline figure over the best blind guess, averaged over targets."""
    scorer = SCORERS[ATTACKS[name].answers]
    gains = []
    for target, claim in claims_of(name, run).items():
        truth = scorer.truth(run.truth, target, (0,), claim)
        scores = scorer.score(claim, truth, scorer.guesses(truth, run.knowledge))
        gains += [score.gain for score in scores if score.name == scorer.headline]
    return sum(gains) / len(gains)


def share_of_peaks(name: str, runs: Iterable[Followed]) -> float:
    """Of targets whose statistic soon after `SINCE` tops all that came before."""
    peaks = []
    for run in runs:
        for claim in claims_of(name, run).values():
            by_round = dict(zip(claim.evidence.rounds, claim.evidence.statistic, strict=True))
            earlier = [value for number, value in by_round.items() if number < SINCE]
            peaks.append(max(by_round[number] for number in SOON) > max(earlier))
    return sum(peaks) / len(peaks)


def snapshot(view: View) -> list[torch.Tensor]:
    bodies = [message.body for message in view.messages]
    sets = [body for body in bodies if isinstance(body, DistilledSet)]
    rest = [body for body in bodies if not isinstance(body, DistilledSet)]
    held = [body.weights if hasattr(body, "weights") else body.delta for body in rest]
    return [
        *(tensor.clone() for weights in held for tensor in weights.values()),
        *(tensor.clone() for one in sets for tensor in (one.inputs, one.labels, one.rates)),
    ]


@pytest.mark.parametrize("name", ATTACKS)
class TestEveryAttack:
    def test_is_a_final_frozen_dataclass_that_says_its_source(self, name):
        attack = ATTACKS[name]
        assert is_dataclass(attack)
        assert attack.__final__
        assert attack.__dataclass_params__.frozen
        assert attack.name == name
        assert len(attack.source) > 10
        assert inspect.getdoc(attack)
        assert attack() == replace(attack())
        assert all(field.name in repr(attack()) for field in fields(attack))

    def test_answers_a_question_that_a_scorer_knows(self, name):
        assert ATTACKS[name].answers in SCORERS

    def test_claims_the_same_for_the_same_seed_bit_by_bit(self, name, heard):
        first, again = claims_of(name, heard), claimed_anew(name, heard)
        assert first.keys() == set(targets_of(heard))
        assert all(told(first[who]) == told(again[who]) for who in first)

    def test_claims_the_same_about_a_target_whoever_else_is_asked_about(self, name, heard):
        together = claims_of(name, heard)
        view, who = heard.transcript.seen_by(SERVER), targets_of(heard)[2]
        alone = ATTACKS[name]().infer(view, (who,), heard.knowledge, Seed(0))
        assert told(alone[who]) == pytest.approx(told(together[who]), abs=1e-4)
        assert alone[who].candidates() == together[who].candidates()

    def test_leaves_the_view_untouched(self, name, heard):
        view = heard.transcript.seen_by(SERVER)
        before = snapshot(view)
        ATTACKS[name]().infer(view, targets_of(heard), heard.knowledge, Seed(0))
        assert all(
            torch.equal(old, new) for old, new in zip(before, snapshot(view), strict=True)
        )

    def test_is_refused_with_the_name_of_each_missing_need(self, name):
        deaf = View(frozenset({client(9)}), ())
        attack = ATTACKS[name]()
        with pytest.raises(NeedsError) as refusal:
            check_needs(attack, deaf, TARGETS[0], Knowledge(CLASSES))
        said = str(refusal.value)
        # What was not heard at all is told as missing updates; broadcasts go without saying,
        # and a loss of which nothing is known may be the one.
        silent = {BROADCASTS, CROSS_ENTROPY}
        expected = [need.words for need in attack.needs - silent]
        assert name in said
        assert all(need in said for need in expected)

    def test_is_not_refused_where_all_is_there(self, name, heard):
        view = heard.transcript.seen_by(SERVER)
        check_needs(ATTACKS[name](), view, targets_of(heard)[0], heard.knowledge)


@pytest.mark.parametrize("name", that_answer(LabelShares))
class TestEveryAttackOnLabelShares:
    def test_beats_the_blind_guess_on_a_planted_leak(self, name, leaky):
        assert mean_gain(name, leaky) > 0.1

    def test_does_not_beat_the_blind_guess_where_nothing_leaks(self, name, tight):
        assert mean_gain(name, tight) <= 0.05

    def test_relabelling_the_classes_relabels_the_claim(self, name, leaky):
        def renamed(weights):
            last = {"2.weight", "2.bias"}
            return {key: w[ORDER] if key in last else w for key, w in weights.items()}

        auxiliary = leaky.knowledge.auxiliary
        other = hold(
            renamed(leaky.start),
            [renamed(delta) for delta in leaky.deltas],
            [leaky.truth.counts[0, who][ORDER].tolist() for who in TARGETS],
            Examples(auxiliary.inputs, ORDER.argsort()[auxiliary.labels]),
            [replace(one, labels=one.labels[:, ORDER]) for one in leaky.sets],
        )
        if not ATTACKS[name].orderless:
            # Another numbering makes another network, which must find the leak all the same.
            assert mean_gain(name, other) > 0.1
            return
        before, after = claims_of(name, leaky), claims_of(name, other)
        for who in TARGETS:
            torch.testing.assert_close(
                after[who].shares, before[who].shares[ORDER], atol=1e-3, rtol=0
            )


@pytest.mark.parametrize("name", that_answer(Shift))
class TestEveryAttackOnShifts:
    def test_finds_most_of_the_planted_shifts(self, name, shifting):
        assert share_of_peaks(name, shifting) > 0.5

    def test_finds_nothing_alike_where_nothing_changes(self, name, still):
        assert share_of_peaks(name, still) < 0.5

    def test_tells_of_rounds_that_were_heard(self, name, shifting):
        heard = shifting[0].transcript.seen_by(SERVER).rounds()
        for claim in claims_of(name, shifting[0]).values():
            assert set(claim.evidence.rounds) <= set(heard)
            assert claim.evidence.since in heard

    def test_relabelling_the_classes_moves_no_evidence(self, name, shifting):
        if not ATTACKS[name].orderless:
            # Another numbering makes other virtual clients, who must show the shift as well.
            others = [renumbered(run, ORDER) for run in shifting]
            assert share_of_peaks(name, others) > 0.5
            return
        before = claims_of(name, shifting[0])
        after = claims_of(name, renumbered(shifting[0], ORDER))
        for who in TARGETS:
            largest = max(before[who].evidence.statistic)
            assert after[who].evidence.statistic == pytest.approx(
                before[who].evidence.statistic, abs=1e-4 * largest
            )


@pytest.mark.parametrize("name", that_answer(Membership))
class TestEveryAttackOnMembership:
    def test_beats_the_blind_guess_where_records_are_learned_by_heart(self, name, by_heart):
        assert mean_gain(name, by_heart) > 0.2

    def test_does_not_beat_the_blind_guess_where_nobody_saw_them(self, name, never_seen):
        assert abs(mean_gain(name, never_seen)) <= 0.06

    def test_speaks_of_every_record(self, name, by_heart):
        count = len(by_heart.knowledge.candidates)
        assert {len(claim.scores) for claim in claims_of(name, by_heart).values()} == {count}


def that_ask_of_people() -> list[str]:
    return [name for question in PERSONAL for name in that_answer(question)]


@pytest.mark.parametrize("name", that_ask_of_people())
class TestEveryAttackOnPeople:
    def test_beats_the_blind_guess_where_people_differ(self, name, different):
        assert mean_gain(name, different) > 0.25

    def test_does_not_beat_the_blind_guess_where_all_are_alike(self, name, alike):
        assert mean_gain(name, alike) <= 0.15


@pytest.mark.parametrize("name", that_answer(Identity))
class TestEveryAttackOnIdentities:
    def test_ranks_all_whom_the_attacker_may_name_and_nobody_else(self, name, different):
        known = set(different.knowledge.people.priors)
        assert all(set(c.users) == known for c in claims_of(name, different).values())


@pytest.mark.parametrize("name", that_answer(SameSender))
class TestEveryAttackOnSenders:
    def test_compares_with_others_of_the_crowd_alone(self, name, different):
        for who, claim in claims_of(name, different).items():
            assert set(claim.others) <= set(different.targets) - {who}


@pytest.mark.parametrize("name", that_answer(Attribute))
class TestEveryAttackOnAttributes:
    def test_tells_an_attribute_that_is_known_of_others_by_its_values(self, name, different):
        told_of = different.knowledge.people.attributes
        for claim in claims_of(name, different).values():
            assert set(claim.values) == set(told_of[claim.attribute].values())
