"""A joint claim about sources has an interval over its clients, and a verdict."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from jaxtyping import Int

from overheard.auditing.summary import summarise
from overheard.auditing.threat_results import with_verdicts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding, RecordExchange
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.threat_results import ThreatResult
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.question import SourceInferenceQuestion
from overheard.questions.source_inference.scorer import SourceInferenceScorer
from overheard.statistics.run_means import estimate_mean

SCORER, CLIENTS, HELD, OUTSIDE = SourceInferenceScorer(), 5, 20, 100
OWNERS = np.repeat([*range(CLIENTS), CLIENTS], [*[HELD] * CLIENTS, OUTSIDE])


def finding_of(
    number: int,
    strength: float,
    examples: Sequence[int] = (),
    owners: Int[np.ndarray, " records"] = OWNERS,
) -> Finding:
    """Claim the right client with more weight, by this strength."""
    true = torch.eye(CLIENTS + 1)[owners]
    logits = torch.tensor(np.random.default_rng(number).normal(size=(len(owners), CLIENTS)))
    logits += strength * true[:, :CLIENTS]
    table = torch.cat((logits.softmax(1) / 2, torch.full((len(owners), 1), 0.5)), 1).float()
    claim = RecordSources(tuple(map(client, range(CLIENTS))), table, examples=tuple(examples))
    truth = replace(claim, probabilities=true)
    return Finding(
        Cell("open", number, (SERVER,), "a", "A()", "source_inference", (0,), label="a"),
        claim.clients,
        ClaimRow.of(claim),
        ClaimRow.of(truth),
        SCORER.score(claim, truth, SCORER.guesses(truth, Knowledge(2))),
    )


def judged(findings: Sequence[Finding], exchange: RecordExchange = "all") -> ThreatResult:
    runs = tuple(
        ArmRun("open", one.cell.seed, (), {}, 0, CLIENTS, record_exchange=exchange)
        for one in findings
    )
    audit = Audit("Sources", "Made up", ("a", "b"), runs, tuple(findings), (), "", {})
    (arm,) = with_verdicts(audit).arm_results
    (result,) = arm.threat_results
    return result


def test_a_single_run_has_an_interval_over_its_clients() -> None:
    finding = finding_of(0, 2.0)
    rows = {row.score: row for row in summarise([finding], Seed(0))}
    hits = np.reshape(finding.claimed.numbers, (len(OWNERS), -1))[:, :-1].argmax(1) == OWNERS
    hits, clients = hits[: CLIENTS * HELD].astype(float), OWNERS[: CLIENTS * HELD]
    value = rows["source_accuracy"].value
    assert value == estimate_mean(hits, np.zeros(len(hits), dtype=int), clients)
    assert value.basis == "these runs"
    assert value.low is not None
    gain = rows["source_accuracy"].gain
    assert gain is not None
    assert gain.low == pytest.approx(value.low - 0.2)
    # A calibration error is one number of a run.
    assert rows["source_calibration_error"].value.low is None


def test_the_verdict_is_leaks_only_where_claims_know_the_client() -> None:
    assert judged([finding_of(0, 2.0)]).verdict == "leaks"
    assert judged([finding_of(1, 0.0)]).verdict == "inconclusive"
    assert judged([finding_of(number, 0.0) for number in range(40)]).verdict == (
        "no leak above margin"
    )


def test_records_that_belong_together_give_no_verdict() -> None:
    result = judged([finding_of(0, 5.0)], "none")
    assert result.verdict == "not enough to judge"
    assert "style alone could tell" in result.judgement.why


def test_sizes_in_clear_are_a_guess_that_claims_must_beat() -> None:
    owners = np.repeat([*range(CLIENTS), CLIENTS], [10, 10, 10, 10, 60, 100])
    finding = finding_of(0, 2.0, (1, 1, 1, 1, 6), owners)
    gain = judged([finding]).judgement.gain
    assert gain is not None
    assert gain.mean == pytest.approx(finding.scores[0].value - 0.6)


@pytest.mark.parametrize(("exchanges", "clients"), [(True, 1), (False, 9)])
def test_no_verdict_is_planned_for_one_client_or_records_that_belong_together(
    *, exchanges: bool, clients: int
) -> None:
    question = SourceInferenceQuestion()
    sizes = PlannedSizes(1, clients, 1, exchanges_records=exchanges)
    assert question.count_planned_pairings(sizes) == 1
    both = PlannedSizes(1, 9, 1, exchanges_records=True)
    assert question.count_planned_pairings(both) > 1
