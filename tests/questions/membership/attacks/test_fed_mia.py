"""FedMIA compares the target's evidence with that of the other clients of a round."""

from dataclasses import replace
from statistics import NormalDist

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.learning.example_gradients import example_gradients, flatten_weights
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.testing.trial import PlantedRun
from tests.questions.membership.attacks.test_lira import figure

FIRST = client(0)


def with_messages(run: PlantedRun, messages: list[Message]) -> PlantedRun:
    return replace(run, transcript=Transcript(tuple(messages)))


def scores_of(run: PlantedRun, attack: FedMia) -> torch.Tensor:
    view = run.transcript.seen_by(SERVER)
    return attack.infer(view, (FIRST,), run.knowledge, Seed(0))[FIRST].scores


@pytest.mark.parametrize("evidence", ["cosine", "confidence"])
def test_ranks_members_first(by_heart, evidence) -> None:
    assert figure(by_heart, FedMia(evidence), "membership_auc") > 0.75


def test_evidence_that_all_clients_show_is_none(by_heart) -> None:
    # Each client sends what the first sends: nobody stands out, so all records have even odds.
    view = by_heart.transcript.seen_by(SERVER)
    alike = [
        replace(one, body=Update(view.updates(FIRST)[one.round].delta))
        if isinstance(one.body, Update)
        else one
        for one in by_heart.transcript.messages
    ]
    scores = scores_of(with_messages(by_heart, alike), FedMia("confidence"))
    assert scores.allclose(torch.zeros(len(scores)), atol=1e-3)


def test_the_score_of_one_round_is_the_log_odds_of_a_normal_probability(by_heart) -> None:
    run = with_messages(by_heart, [m for m in by_heart.transcript.messages if m.round == 0])
    view, known = run.transcript.seen_by(SERVER), run.knowledge
    record = candidate_records(known).take(torch.tensor([5]))
    gradient = example_gradients(known.build_model, view.broadcasts()[0], record, known.recipe)[
        0
    ].double()
    cosines = [
        -float(torch.cosine_similarity(flatten_weights(one).double(), gradient, dim=0))
        for one in (view.updates(client(number))[0].delta for number in range(4))
    ]
    mean = sum(cosines[1:]) / 3
    variance = sum((one - mean) ** 2 for one in cosines[1:]) / 3
    below = NormalDist(mean, (variance + 1e-8) ** 0.5)
    # The upper tail is the lower one of the mirrored value, and not lost in rounding.
    ratio = below.cdf(cosines[0]) / below.cdf(2 * mean - cosines[0])
    assert float(scores_of(run, FedMia())[5].exp()) == pytest.approx(ratio, rel=1e-3)


def test_rounds_are_combined_by_the_mean_probability(by_heart) -> None:
    def at(number: int) -> torch.Tensor:
        messages = [m for m in by_heart.transcript.messages if m.round == number]
        return scores_of(with_messages(by_heart, messages), FedMia()).double().sigmoid()

    together = scores_of(by_heart, FedMia()).double().sigmoid()
    assert together.allclose((at(0) + at(1)) / 2, atol=1e-5)


def test_needs_two_other_clients_and_a_single_target(by_heart) -> None:
    few = with_messages(
        by_heart,
        [
            one
            for one in by_heart.transcript.messages
            if not isinstance(one.body, Update) or one.sender in (FIRST, client(1))
        ],
    )
    view = few.transcript.seen_by(SERVER)
    with pytest.raises(NeedsError, match="2 or more others"):
        FedMia().infer(view, (FIRST,), few.knowledge, Seed(0))
    whole = by_heart.transcript.seen_by(SERVER)
    with pytest.raises(NeedsError, match="ask about clients"):
        FedMia().infer(whole, (COHORT,), by_heart.knowledge, Seed(0))
