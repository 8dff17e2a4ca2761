"""Attacks on sources read all clients together, over the rounds in which each took part."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import torch

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.messages import Message, Update
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership
from overheard.questions.source_inference.attacks.cosine_source import (
    CosineSource,
    compare_with_others,
)
from overheard.questions.source_inference.attacks.loss_source import LossSource
from overheard.questions.source_inference.attacks.whitened_source import WhitenedSource
from overheard.questions.source_inference.checks import RECORDS_OF_CLIENT, simulate_sources
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.estimators.observed_rounds import rounds_to_read

RUN = simulate_sources(memorised=True)
ATTACKS = (LossSource(), CosineSource(), WhitenedSource())


def claim_of(attack: Attack[RecordSources], view: View) -> RecordSources:
    return attack.infer(view, RUN.targets, RUN.knowledge, Seed(0))[COHORT]


def without(view: View, absent: Mapping[int, Party]) -> View:
    """Return the view of two equal rounds, without the update of one client in each."""
    rounds = [replace(one, round=number) for number in absent for one in view.messages]
    kept = [
        one
        for one in rounds
        if not (isinstance(one.body, Update) and one.sender == absent[one.round])
    ]
    return replace(view, messages=tuple(kept))


@pytest.mark.parametrize("attack", ATTACKS, ids=repr)
def test_clients_that_take_part_in_some_rounds_are_compared(
    attack: Attack[RecordSources],
) -> None:
    view = RUN.transcript.seen_by(SERVER)
    claim = claim_of(attack, without(view, {0: RUN.targets[0], 1: RUN.targets[1]}))
    held = len(RUN.targets) * RECORDS_OF_CLIENT
    named = claim.probabilities[:held, :-1].argmax(1)
    owners = torch.arange(held) // RECORDS_OF_CLIENT
    assert float((named == owners).float().mean()) > 0.5


def test_the_evidence_of_a_client_is_compared_with_that_of_the_others() -> None:
    values = torch.tensor([[3.0, 0.0], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    # The others of the first client have mean 0.5 and deviation 0.5: 5 deviations above.
    odds = compare_with_others(values)
    below = torch.special.log_ndtr(torch.tensor(5.0, dtype=torch.float64))
    above = torch.special.log_ndtr(torch.tensor(-5.0, dtype=torch.float64))
    assert float(odds[0, 0]) == pytest.approx(float(below - above), rel=1e-4)
    assert odds[:, 1].tolist() == [0, 0, 0]


def scaled(view: View, factors: Mapping[str, float], senders: Sequence[Party]) -> View:
    """Return the view with tensors of these senders' updates times a factor each."""
    messages = [
        replace(
            one,
            body=replace(
                one.body,
                delta={
                    name: tensor * factors.get(name, factors.get("", 1.0))
                    for name, tensor in one.body.delta.items()
                },
            ),
        )
        if isinstance(one.body, Update) and one.sender in senders
        else one
        for one in view.messages
    ]
    return replace(view, messages=tuple(messages))


@pytest.mark.parametrize("factor", [0.0, 1e-4])
def test_an_update_of_nearly_zero_does_not_hide_the_records_of_others(factor: float) -> None:
    view = scaled(RUN.transcript.seen_by(SERVER), {"": factor}, RUN.targets[:1])
    claim = claim_of(WhitenedSource(), view)
    others = torch.arange(RECORDS_OF_CLIENT, len(RUN.targets) * RECORDS_OF_CLIENT)
    held = claim.probabilities[others]
    named = held[:, :-1].argmax(1)
    assert float((named == others // RECORDS_OF_CLIENT).float().mean()) > 0.85
    assert float(held[:, -1].mean()) < 0.3


@pytest.mark.parametrize(
    ("attack", "fewest"), [(WhitenedSource(), 2), (CosineSource(), 3)], ids=repr
)
def test_updates_of_no_trained_model_are_left_out_while_enough_others_are_left(
    attack: Attack[RecordSources], fewest: int
) -> None:
    view, (broken, *others) = RUN.transcript.seen_by(SERVER), RUN.targets
    claim = claim_of(attack, scaled(view, {"": float("nan")}, [broken]))
    assert claim.clients == tuple(RUN.targets)
    held = torch.arange(RECORDS_OF_CLIENT, len(RUN.targets) * RECORDS_OF_CLIENT)
    named = claim.probabilities[held, :-1].argmax(1)
    assert float((named == held // RECORDS_OF_CLIENT).float().mean()) > 0.7
    with pytest.raises(NeedsError, match="numbers beyond"):
        claim_of(attack, scaled(view, {"": 1e20}, others[fewest - 2 :]))


def test_a_layer_that_no_client_changes_hides_no_record() -> None:
    view = RUN.transcript.seen_by(SERVER)
    frozen = scaled(view, {"2.weight": 0.0, "2.bias": 0.0}, RUN.targets)
    target = RUN.targets[1]
    claims = WhitenedMembership().infer(frozen, [target], RUN.knowledge, Seed(0))
    scores = claims[target].scores
    own = scores[RECORDS_OF_CLIENT : 2 * RECORDS_OF_CLIENT]
    outside = scores[len(RUN.targets) * RECORDS_OF_CLIENT :]
    assert float((own[:, None] > outside).float().mean()) > 0.9


@pytest.mark.parametrize("attack", ATTACKS, ids=repr)
def test_refuses_a_single_client(attack: Attack[RecordSources]) -> None:
    view = RUN.transcript.seen_by(SERVER)
    with pytest.raises(NeedsError, match="updates of two clients or more"):
        attack.infer(view, RUN.targets[:1], RUN.knowledge, Seed(0))


def test_a_client_outside_the_chosen_rounds_is_read_in_its_own_last_round() -> None:
    view = RUN.transcript.seen_by(SERVER)
    shown = without(view, {0: RUN.targets[0], 1: RUN.targets[1]})
    read = rounds_to_read(shown, RUN.targets, most_rounds=1)
    assert {number: len(senders) for number, senders in read.items()} == {0: 3, 1: 3}


def test_larger_clients_are_more_likely_only_if_asked() -> None:
    view = RUN.transcript.seen_by(SERVER)
    messages = tuple(
        replace(one, body=Update(one.body.delta, 1 + 9 * (one.sender == RUN.targets[0])))
        if isinstance(one.body, Update)
        else one
        for one in view.messages
    )
    unequal = replace(view, messages=messages)
    equal, by_size = (
        claim_of(WhitenedSource(prior=prior), unequal) for prior in ("equal", "sizes")
    )
    assert by_size.examples == (10, 1, 1, 1)
    outsiders = slice(len(RUN.targets) * RECORDS_OF_CLIENT, None)
    first, others = (
        float(one.probabilities[outsiders, 0].mean() / one.probabilities[outsiders, 1].mean())
        for one in (by_size, equal)
    )
    assert first > 2 * others
    hidden = tuple(
        Message(one.round, one.sender, one.readers, Update(one.body.delta, None))
        if isinstance(one.body, Update)
        else one
        for one in view.messages
    )
    with pytest.raises(NeedsError, match="take the prior 'equal'"):
        claim_of(WhitenedSource(prior="sizes"), replace(view, messages=hidden))
