"""Claims about sources are scored by the records that some client holds."""

from math import log
from typing import Any

import pytest
import torch

from overheard.core.errors import ClaimError, NeedsError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import client
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.truth import GroundTruth
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.scorer import SourceInferenceScorer

SCORER = SourceInferenceScorer()

CLIENTS = tuple(map(client, range(4)))

OWNERS = RecordOwners({client(0): (0, 1), client(2): (2, 3), client(3): ()}, frozenset({5}))
TRUTH = GroundTruth(
    Facts(
        OWNERS,
        LabelCounts(
            {(0, one): torch.tensor([6, 2 * place]) for place, one in enumerate(CLIENTS)}
        ),
    )
)


def claim_of(*rows: list[float], **subject: Any) -> RecordSources:
    return RecordSources(CLIENTS, torch.tensor(rows), **subject)


CLAIM = claim_of(
    [0.4, 0.1, 0.1, 0.0, 0.4],  # of client 0, which is first
    [0.2, 0.2, 0.1, 0.1, 0.4],  # of client 0, which is first with another
    [0.3, 0.2, 0.1, 0.0, 0.4],  # of client 2, which is third
    [0.1, 0.4, 0.3, 0.2, 0.0],  # of client 2, which is second
    [0.1, 0.0, 0.0, 0.0, 0.9],  # of nobody
    [1.0, 0.0, 0.0, 0.0, 0.0],  # not known
    labels=torch.tensor([0, 1, 1, 0, 1, 1]),
    examples=(10, 10, 30, 10),
)


def scores_of(claim: RecordSources) -> dict[str, Any]:
    true = SCORER.true_claim(TRUTH, client(0), (0,), claim)
    guesses = SCORER.guesses(true, Knowledge(2))
    return {one.name: one for one in SCORER.score(claim, true, guesses)}


def test_the_truth_names_the_client_that_holds_a_record_or_nobody() -> None:
    true = SCORER.true_claim(TRUTH, client(0), (0,), CLAIM)
    assert [row.tolist() for row in true.probabilities] == [
        [1, 0, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0],
    ]


def test_records_of_others_and_of_several_clients_do_not_count() -> None:
    shared = RecordOwners({client(0): (0, 1), client(2): (1,), client(9): (2,)})
    true = SCORER.true_claim(TRUTH.having(shared), client(0), (0,), CLAIM)
    assert true.probabilities.sum(1).tolist() == [1, 0, 0, 1, 1, 1]


def test_scores_worked_by_hand() -> None:
    scores = {name: one.value for name, one in scores_of(CLAIM).items()}
    assert scores["source_accuracy"] == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    assert scores["source_top3"] == 1.0
    # The probabilities of the owners, given that a client holds the record.
    own = [0.4 / 0.6, 0.2 / 0.6, 0.1 / 0.6, 0.3 / 1.0]
    assert scores["source_log_loss"] == pytest.approx(-sum(map(log, own)) / 4, rel=1e-6)
    # Four records, each a bin of its own: highest probabilities beside hits.
    pairs = [(0.4 / 0.6, 1), (0.2 / 0.6, 0.5), (0.3 / 0.6, 0), (0.4, 0)]
    error = sum(abs(sure - hit) for sure, hit in pairs) / 4
    assert scores["source_calibration_error"] == pytest.approx(error, rel=1e-6)
    held = (0.4**2 + 0.4**2 + 0.4**2 + 0) / 4
    assert scores["nobody_error"] == pytest.approx((held + 0.1**2) / 2, rel=1e-6)


def test_guesses_are_any_client_the_largest_and_the_frequency_of_the_label() -> None:
    scores = scores_of(CLAIM)
    accuracy, loss = scores["source_accuracy"], scores["source_log_loss"]
    assert accuracy.uninformed == {"any client": 0.25, "the largest client": 0.5}
    assert loss.uninformed["any client"] == pytest.approx(log(4))
    halves = (log(6) + log(2)) / 2
    assert loss.uninformed["the largest client"] == pytest.approx(halves, rel=1e-6)
    # Of label 0 all hold six. Of label 1 the clients hold 0, 2, 4 and 6.
    assert accuracy.references == {"label frequency": pytest.approx((0.25 + 0 + 0 + 0.25) / 4)}
    assert scores["source_calibration_error"].uninformed == {}
    assert scores["nobody_error"].uninformed["any client"] == 0.25


def test_sizes_that_are_equal_or_hidden_are_no_guess() -> None:
    for examples in ((), (10, 10, 10, 10)):
        claim = claim_of(*CLAIM.probabilities.tolist(), examples=examples)
        assert scores_of(claim)["source_accuracy"].uninformed.keys() == {"any client"}


def test_without_labels_or_counts_no_guess_knows_them() -> None:
    unlabelled = claim_of(*CLAIM.probabilities.tolist())
    assert scores_of(unlabelled)["source_accuracy"].references == {}
    other = GroundTruth(Facts(OWNERS))
    assert SCORER.informed_guesses(SCORER.true_claim(other, client(0), (0,), CLAIM)) == {}


def test_a_claim_of_no_client_is_any_client_if_one_holds_the_record() -> None:
    nobody = claim_of(*[[0.0, 0, 0, 0, 1]] * 6)
    assert scores_of(nobody)["source_accuracy"].value == 0.25


def test_refuses_a_truth_of_other_clients_and_impossible_claims() -> None:
    others = TRUTH.having(RecordOwners({client(9): (0,)}))
    with pytest.raises(NeedsError, match="which records clients trained on"):
        SCORER.true_claim(others, client(0), (0,), CLAIM)
    with pytest.raises(ClaimError, match="sum to 1"):
        claim_of([0.5, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ClaimError, match="4 clients need 5 probabilities"):
        claim_of([0.5, 0.5])
