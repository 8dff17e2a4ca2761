"""Rows of findings.json on epsilon hold what was accounted for and measured."""

from dataclasses import replace

from overheard.core.defense import RunParameters
from overheard.core.parties import client
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.epsilon.entry import epsilon_row
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.epsilon.threshold_bound import GuessEvidence, ThresholdRates
from overheard.findings.epsilon_rows import BoundByGuesses, BoundByThreshold
from tests.auditing.epsilon_audits import LOCAL, audit_of, noisy_finding


def test_a_row_of_drawn_clients_has_the_epsilon_with_and_without_the_draw() -> None:
    central = DpFedavg(1.0, 4.0).mechanism()
    run = RunParameters(20, 0.1, sampling_rate=0.1, sampling="poisson")
    (_, readers) = epsilon_results(audit_of(central, run=run))
    found, row = readers.accounted.recomputed, epsilon_row(readers)
    assert found is not None
    assert (row.pld, row.rdp, row.drawn) == (found.pld, found.rdp, found.subsampled)
    assert row.drawn == row.ceiling < row.pld
    assert (row.client_sampling, row.sampling_rate, row.lower) == ("poisson", 0.1, None)


def test_a_row_says_why_a_claim_is_not_confirmed() -> None:
    unsure = replace(LOCAL, unproven="batches are not counted", stated=0.5)
    for stated, doubt in (
        (unsure, "batches are not counted"),
        (replace(LOCAL, stated=9.0), ""),
    ):
        row = epsilon_row(epsilon_results(audit_of(stated))[0])
        assert (row.claimed, row.claimed_for, row.doubt) == (stated.stated, "run", doubt)


def test_a_measured_bound_is_told_with_its_evidence() -> None:
    finding = noisy_finding(1.0, members=100, outsiders=200, observers=(client(1),))
    (_, plain) = epsilon_results(audit_of(LOCAL, finding))
    (_, canaries) = epsilon_results(audit_of(LOCAL, finding, are_canaries=True))
    assert plain.lower_bound is not None
    assert canaries.lower_bound is not None
    rates, row = plain.lower_bound.evidence, epsilon_row(plain).measured
    assert isinstance(rates, ThresholdRates)
    assert isinstance(row, BoundByThreshold)
    assert (row.at_least, row.attack, row.threshold, row.members, row.outsiders) == (
        plain.lower_bound.epsilon, "peek", rates.threshold, 50, 100,
    )  # fmt: skip
    assert row.found.mean == rates.true_positive_rate.mean
    assert row.passed.mean == rates.false_positive_rate.mean
    guesses, row = canaries.lower_bound.evidence, epsilon_row(canaries).measured
    assert isinstance(guesses, GuessEvidence)
    assert isinstance(row, BoundByGuesses)
    assert (row.at_least, row.attack) == (canaries.lower_bound.epsilon, "peek")
    assert [row.above, row.below] == [guesses.above, guesses.below]
    counts = guesses.counts
    assert (row.said_in, row.said_out, row.right) == (
        counts.guessed_in, counts.guessed_out, counts.right,
    )  # fmt: skip
