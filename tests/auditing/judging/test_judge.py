"""Claims are judged by what the ground truth states; what it lacks is a reason."""

from dataclasses import replace

import pytest
import torch

from overheard.auditing.cells.cell_claims import CellClaims, TargetClaim
from overheard.auditing.judging.judge import ClaimsOfThreat, score_claims
from overheard.auditing.judging.run_truth import ThreatTruth
from overheard.core.claims import Picture
from overheard.core.facts import Facts
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.findings.finding import Cell
from overheard.questions.label_shares.claim import LabelShares

OVERALL = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
SINGLE = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (1,))
TRUTH = GroundTruth(Facts(LabelCounts({(0, client(0)): torch.tensor([1, 3])})))
CLAIM = TargetClaim(LabelShares(torch.tensor([0.25, 0.75])), {}, (0, 1))


def test_a_claim_about_rounds_without_counts_is_refused_and_the_others_are_scored():
    # A recording of mean updates: the counts of round 1 are missing.
    claims = ClaimsOfThreat(
        (0, 1),
        [CellClaims(cell, {COHORT: CLAIM}, {}) for cell in (OVERALL, SINGLE)],
        ThreatTruth(TRUTH, {}),
    )
    scored = score_claims(claims)
    assert [finding.cell for finding in scored.findings] == [OVERALL]
    (refusal,) = scored.refusals
    assert refusal.cell == SINGLE
    assert refusal.missing == (
        "the ground truth has no label counts of cohort in round 1: add them",
    )


@pytest.mark.parametrize("with_pictures", [False, True])
def test_findings_hold_pictures_only_where_asked(
    with_pictures: bool, monkeypatch: pytest.MonkeyPatch
):
    picture = Picture("a digit", torch.zeros(1, 2, 2))
    monkeypatch.setattr(LabelShares, "pictures", lambda _: (picture,))
    cells = [CellClaims(replace(OVERALL, rounds=(0,)), {client(0): CLAIM}, {})]
    claims = ClaimsOfThreat((0,), cells, ThreatTruth(TRUTH, {}))
    (finding,) = score_claims(claims, with_pictures=with_pictures).findings
    assert finding.true is not None
    expected = (picture,) if with_pictures else ()
    assert finding.claimed.pictures == finding.true.pictures == expected
