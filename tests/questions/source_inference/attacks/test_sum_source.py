"""Sums over cohorts that vary tell which client holds a record; fixed cohorts do not."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.messages import Aggregate, Broadcast, Message
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View, mean_update
from overheard.questions.membership.attacks.sum_membership import SumMembership
from overheard.questions.source_inference.attacks.sum_source import SumSource
from overheard.questions.source_inference.checks import RECORDS_OF_CLIENT, simulate_sources
from overheard.questions.source_inference.claim import RecordSources

RUN = simulate_sources(memorised=True)
HELD = len(RUN.targets) * RECORDS_OF_CLIENT
PAIRS = tuple(combinations(range(len(RUN.targets)), 2))


def sums(cohorts: Sequence[Sequence[int]], totals: bool = False) -> View:
    """Return the view of a server that reads the mean update of each cohort alone."""
    seen = RUN.transcript.seen_by(SERVER)
    (start,) = (one for one in seen.messages if isinstance(one.body, Broadcast))
    messages = []
    for number, cohort in enumerate(cohorts):
        members = [RUN.targets[one] for one in cohort]
        mean = mean_update([seen.updates(one)[0] for one in members])
        examples = RECORDS_OF_CLIENT * len(members) if totals else None
        body = Aggregate(mean.delta, frozenset(members), examples)
        messages += [
            replace(start, round=number),
            Message(number, COHORT, frozenset({SERVER}), body),
        ]
    return Transcript(messages).seen_by(SERVER)


def claim_of(view: View, targets: Sequence[Party] = RUN.targets) -> RecordSources:
    return SumSource().infer(view, targets, RUN.knowledge, Seed(0))[COHORT]


def right_share(claim: RecordSources) -> float:
    named = claim.probabilities[:HELD, :-1].argmax(1)
    return float((named == torch.arange(HELD) // RECORDS_OF_CLIENT).float().mean())


def test_sums_of_pairs_name_the_holders() -> None:
    claim = claim_of(sums(PAIRS, totals=True))
    assert right_share(claim) > 0.6
    # Sizes follow from their sums.
    assert claim.examples == (RECORDS_OF_CLIENT,) * len(RUN.targets)


@pytest.mark.slow
def test_wrong_cohorts_tell_no_client_from_another() -> None:
    right, wrong = PAIRS * 3, (*PAIRS[3:], *PAIRS[:2], *PAIRS, *PAIRS[::-1], PAIRS[2])
    assert right_share(claim_of(sums(right))) > 0.6
    assert sorted(right) == sorted(wrong) != right
    renamed = iter(wrong)
    messages = tuple(
        replace(
            one,
            body=replace(
                one.body, cohort=frozenset(RUN.targets[place] for place in next(renamed))
            ),
        )
        if isinstance(one.body, Aggregate)
        else one
        for one in sums(right).messages
    )
    claim = claim_of(Transcript(messages).seen_by(SERVER))
    spread = claim.probabilities[:, :-1].amax(1) - claim.probabilities[:, :-1].amin(1)
    assert float(spread.max()) < 1e-6


def test_records_of_clients_that_are_not_asked_about_are_of_no_target() -> None:
    view = sums(PAIRS)
    every, some = claim_of(view), claim_of(view, RUN.targets[:2])
    assert some.examples == ()
    others = every.probabilities[:, 2:].sum(1)
    assert torch.allclose(some.probabilities[:, -1], others, atol=1e-5)


def test_a_client_has_higher_scores_for_its_own_records_than_for_outsiders() -> None:
    claims = SumMembership().infer(sums(PAIRS), RUN.targets, RUN.knowledge, Seed(0))
    shares = []
    for number, target in enumerate(RUN.targets):
        own = claims[target].scores[:HELD].view(-1, RECORDS_OF_CLIENT)[number]
        shares.append((own[:, None] > claims[target].scores[HELD:]).float().mean())
    assert float(torch.stack(shares).mean()) > 0.8


@pytest.mark.parametrize("attack", [SumSource(), SumMembership()], ids=repr)
def test_fixed_cohorts_are_refused_with_their_rank(attack: SumSource | SumMembership) -> None:
    with pytest.raises(NeedsError, match="the sums have rank 2 of 4 clients"):
        attack.infer(sums([(0, 1), (2, 3)] * 3), RUN.targets, RUN.knowledge, Seed(0))


@pytest.mark.parametrize("attack", [SumSource(), SumMembership()], ids=repr)
def test_a_target_in_no_sum_and_the_cohort_are_refused(
    attack: SumSource | SumMembership,
) -> None:
    view = sums([(0, 1), (1, 2), (0, 2)])
    with pytest.raises(NeedsError, match="sums that name it"):
        attack.infer(view, RUN.targets, RUN.knowledge, Seed(0))
    with pytest.raises(NeedsError, match='about = "clients"'):
        attack.infer(view, [COHORT, RUN.targets[0]], RUN.knowledge, Seed(0))


def test_sums_without_a_trained_model_are_left_out() -> None:
    view = sums([*PAIRS, *PAIRS])
    broken = [
        replace(
            one, body=replace(one.body, delta={k: v * 1e20 for k, v in one.body.delta.items()})
        )
        if isinstance(one.body, Aggregate) and one.round in chosen
        else one
        for chosen in [{3}]
        for one in view.messages
    ]
    assert right_share(claim_of(replace(view, messages=tuple(broken)))) > 0.5
