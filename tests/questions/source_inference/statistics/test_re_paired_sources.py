"""Claims are compared with sources that are permuted within labels, or among canaries."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from jaxtyping import Float

from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding, RecordExchange
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.scorer import SourceInferenceScorer
from overheard.questions.source_inference.statistics.re_paired_sources import (
    NOBODY,
    client_evidence,
    expected_accuracy,
    re_pair_sources,
    record_scores_by_client,
)
from overheard.statistics.permutation_test import RePairedFits, adjusted_p_values, re_pairings
from tests.questions.null_p_values import AUDITS, assert_uniform

SCORER, CLIENTS, LABELS, RECORDS = SourceInferenceScorer(), 3, 4, 120


def run_of(number: int, strength: float, exchange: RecordExchange) -> tuple[Finding, ArmRun]:
    """Claims know the labels of clients, which records are held and, if told, by whom."""
    random = np.random.default_rng(number)
    labels = random.integers(0, LABELS, RECORDS)
    wants = random.dirichlet([0.5] * LABELS, CLIENTS)
    sources = np.full(RECORDS, CLIENTS)
    for place, want in enumerate(wants):
        free = np.flatnonzero(sources == CLIENTS)
        odds = want[labels[free]] + 1e-6
        sources[random.choice(free, 20, replace=False, p=odds / odds.sum())] = place
    true = torch.eye(CLIENTS + 1)[sources]
    logits = 4 * wants[:, labels].T + random.normal(size=(RECORDS, CLIENTS))
    logits = (1 + (sources[:, None] != CLIENTS)) * logits  # surer of records of some client
    logits += strength * (sources[:, None] == np.arange(CLIENTS))
    chances = torch.tensor(logits).softmax(1) / 2
    claim = RecordSources(
        tuple(map(client, range(CLIENTS))),
        torch.cat((chances, torch.full((RECORDS, 1), 0.5)), 1).float(),
    )
    truth = replace(claim, probabilities=true)
    finding = Finding(
        Cell("open", number, (SERVER,), "a", "A()", "source_inference", (0,)),
        claim.clients,
        ClaimRow.of(claim),
        ClaimRow.of(truth),
        SCORER.score(claim, truth, SCORER.guesses(truth, Knowledge(2))),
    )
    run = ArmRun("open", number, (), {}, 0, CLIENTS, record_exchange=exchange)
    return finding, replace(run, record_labels=tuple(labels.tolist()))


def fits_of(number: int, strength: float, exchange: RecordExchange) -> RePairedFits:
    finding, run = run_of(number, strength, exchange)
    return re_pair_sources([finding], [run], Seed(number))


def p_values_of(
    audits: int, strength: float, exchange: RecordExchange
) -> Float[np.ndarray, " audits"]:
    fits = (fits_of(number, strength, exchange).fits for number in range(audits))
    return np.array([adjusted_p_values(one)[0] for one in fits])


def test_claims_that_know_labels_and_members_alone_have_uniform_p_values() -> None:
    assert_uniform(p_values_of(AUDITS, 0.0, "same label"))


def test_across_labels_they_would_be_said_to_leak() -> None:
    assert (p_values_of(40, 0.0, "all") <= 0.025).mean() > 0.5


def test_claims_that_know_the_client_are_found_within_labels() -> None:
    assert (p_values_of(40, 2.0, "same label") <= 0.025).mean() > 0.9


def test_claims_under_pseudonyms_are_about_the_same_sources() -> None:
    finding, run = run_of(0, 1.0, "same label")
    hidden = replace(
        finding,
        cell=replace(finding.cell, attack="b"),
        targets=tuple(Party(f"anon/0-{number}") for number in range(CLIENTS)),
    )
    fits = re_pair_sources([finding, hidden], [run], Seed(0)).fits
    assert np.array_equal(fits[:, 0], fits[:, 1])


def test_records_that_belong_together_give_no_test() -> None:
    fits = fits_of(0, 5.0, "none")
    assert not len(fits.fits)
    assert "style alone could tell who holds a record: take canaries" in fits.why_none


def test_a_random_client_has_no_evidence_on_average() -> None:
    evidence = client_evidence(np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]]))
    assert evidence.sum(1) == pytest.approx([0, 0])


def test_the_expected_accuracy_is_the_mean_over_all_permutations() -> None:
    random = np.random.default_rng(0)
    groups, sources = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 2, NOBODY, 1, 1, 2])
    hits = np.eye(3)[random.integers(1, 3, 6)]
    pairings = re_pairings(groups, Seed(0))
    assert len(pairings) == 6 * 6
    shares = [hits[np.arange(6), sources[one]].sum() / 5 for one in pairings]
    assert expected_accuracy(hits, sources, groups) == pytest.approx(np.mean(shares))


def test_what_labels_gain_is_above_the_guess_and_never_below() -> None:
    gains = [fits_of(number, 0.0, "same label").common_gains[0] for number in range(20)]
    assert min(gains) >= 0
    assert np.mean(gains) > 0.05


def test_a_score_is_the_mean_over_the_records_of_all_clients() -> None:
    finding, _ = run_of(3, 1.0, "all")
    for score in finding.scores[:2]:
        values = record_scores_by_client(finding, score.name)
        assert values.keys() == set(finding.targets)
        assert np.mean(np.concatenate(list(values.values()))) == pytest.approx(
            score.value, 1e-4
        )
