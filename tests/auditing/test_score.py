"""Claims are scored in one call, each by the scorer of its own question."""

from dataclasses import dataclass

import pytest
import torch

import overheard
from overheard.auditing.score import COLUMNS, MAX_ROWS, ScoredClaims, score
from overheard.core.claims import Claim
from overheard.core.errors import PlanError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party, client
from overheard.core.scorer import Score
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership

KNOWLEDGE = Knowledge(classes=2)

# client 0 holds 1 + 3 and 3 + 1 examples of the labels, client 1 holds 4 + 0 twice
TRUTH = GroundTruth(Facts(LabelCounts({
    (0, client(0)): torch.tensor([1, 3]), (1, client(0)): torch.tensor([3, 1]),
    (0, client(1)): torch.tensor([4, 0]), (1, client(1)): torch.tensor([4, 0]),
})))  # fmt: skip


def shares(*values: float) -> LabelShares:
    return LabelShares(torch.tensor(values))


def test_scores_each_claim_against_the_truth_of_its_rounds():
    claims = {client(0): shares(0.5, 0.5), client(1): shares(0.9, 0.1)}
    whole = score(claims, TRUTH, KNOWLEDGE, (0, 1))
    assert whole.question == "label_shares"
    l1 = {target: scores[0] for target, scores in whole.by_target.items()}
    assert [(one.name, round(one.value, 5)) for one in l1.values()] == [("l1", 0), ("l1", 0.2)]
    # of round 0 alone client 0 has a quarter and three: a quarter off twice
    first = score(claims, TRUTH, KNOWLEDGE, (0,)).by_target[client(0)][0]
    assert first.value == pytest.approx(0.5)


def test_a_frame_has_one_row_per_target_and_score():
    scored = overheard.score({client(1): shares(0.9, 0.1)}, TRUTH, KNOWLEDGE, (0, 1))
    frame = scored.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == len(scored.by_target[client(1)])
    first = frame.iloc[0]
    # halves are a half off twice
    assert (first["target"], first["score"], first["better"]) == ("client/1", "l1", "lower")
    assert (first["value"], first["blind"]) == (pytest.approx(0.2), pytest.approx(1.0))
    assert first["gain"] == pytest.approx(0.8)


@dataclass(frozen=True)
class Hunch(Claim):
    def numbers(self) -> tuple[float, ...]:
        return ()


def test_refuses_unknown_and_mixed_claims():
    membership = Membership(torch.zeros(1))
    with pytest.raises(ValueError, match="got LabelShares, Membership"):
        score({client(0): shares(0.5, 0.5), client(1): membership}, TRUTH, KNOWLEDGE, (0,))
    with pytest.raises(ValueError, match="got no claims"):
        score({}, TRUTH, KNOWLEDGE, (0,))
    with pytest.raises(PlanError, match="Hunch"):
        score({client(0): Hunch()}, TRUTH, KNOWLEDGE, (0,))


def test_a_table_escapes_names_and_stays_small():
    one = Score("<b>", 0.5, "lower", {}, {})
    page = ScoredClaims("label_shares", {Party("<i>"): (one,) * (MAX_ROWS + 3)})._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<i>" not in page
    assert page.count("<tr>") == MAX_ROWS + 1
    assert "3 more rows" in page
