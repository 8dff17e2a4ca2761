"""Each shift is paired with its own control only."""

from dataclasses import replace
from math import inf

import numpy as np

from overheard.core.claims import Timeline
from overheard.core.parties import client
from overheard.findings.control_draws import ControlDraws
from overheard.findings.finding import ClaimRow, Finding
from overheard.questions.shift.statistics.pairs import (
    evidence_at_shift,
    headline_draws,
    pair_runs,
    peak_evidence,
)
from tests.auditing.shift_findings import peak_finding, peak_findings, shift_finding


def test_pairs_share_seed_and_target() -> None:
    findings = [
        shift_finding((0, 0, 5, 0), seed=1, target=client(1)),
        shift_finding((0, 0, 7, 0), seed=1, target=client(2)),
        shift_finding((0, 0, 1, 0), seed=1, target=client(2), is_control=True),
        shift_finding((0, 0, 2, 0), seed=1, target=client(1), is_control=True),
    ]
    evidence = peak_evidence(pair_runs(findings))
    assert evidence.shifted.tolist() == [5, 7]
    assert evidence.control.tolist() == [2, 1]


def of_kind(finding: Finding, control: ControlDraws, number: int = 0) -> Finding:
    cell = replace(finding.cell, is_control=True, control=control, control_number=number)
    return replace(finding, cell=cell, true=ClaimRow())


def test_the_headline_is_against_natural_controls_and_the_exact_ones_are_apart() -> None:
    shifted, natural, exact = (peak_finding(value, seed=0) for value in (5.0, 4.0, 3.0))
    findings = [shifted, of_kind(exact, "exact"), of_kind(natural, "natural")]
    assert headline_draws(findings) == "natural"
    assert peak_evidence(pair_runs(findings)).control.tolist() == [4]
    assert peak_evidence(pair_runs(findings, "exact")).control.tolist() == [3]
    assert headline_draws(findings[:2]) == "exact"
    assert peak_evidence(pair_runs(findings[:2])).control.tolist() == [3]
    assert pair_runs(findings[:2], "natural") == ()


def test_a_run_has_all_its_controls_of_one_kind() -> None:
    findings = [peak_finding(9.0, seed=seed) for seed in (0, 1)]
    findings += [
        of_kind(peak_finding(value, seed=seed), "natural", number)
        for seed, number, value in ((0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0))
    ]
    evidence = peak_evidence(pair_runs(findings))
    assert evidence.shifted.tolist() == [9, 9]
    assert evidence.control.tolist() == [1, 2, 3]
    assert evidence.control_clusters.tolist() == [0, 0, 1]


def test_omits_runs_without_a_partner_or_without_a_shift() -> None:
    alone = peak_finding(1.0, seed=0)
    other = peak_finding(1.0, seed=1, is_control=True)
    bystander = shift_finding((0, 0, 9, 0), seed=2, since=None)
    beside = peak_finding(1.0, seed=2, is_control=True)
    assert pair_runs([alone, other, bystander, beside]) == ()


def test_peak_evidence_is_over_all_rounds_and_the_other_is_at_the_shift() -> None:
    findings = [
        shift_finding((9.0, 0.0, 4.0, 5.0)),
        shift_finding((1.0, 0.0, 3.0, 2.0), is_control=True),
    ]
    paired = pair_runs(findings)
    assert (peak_evidence(paired).shifted[0], peak_evidence(paired).control[0]) == (9.0, 3.0)
    assert (evidence_at_shift(paired).shifted[0], evidence_at_shift(paired).control[0]) == (
        4.0,
        3.0,
    )


def test_takes_the_next_round_if_the_true_one_has_no_statistic() -> None:
    late, early = Timeline((0, 3), (1.0, 6.0)), Timeline((0, 1), (1.0, 6.0))
    shifted = replace(shift_finding((0, 0, 0, 0)), claimed=ClaimRow(timeline=late))
    control = replace(
        shift_finding((0, 0, 0, 0), is_control=True), claimed=ClaimRow(timeline=early)
    )
    evidence = evidence_at_shift(pair_runs([shifted, control]))
    assert (evidence.shifted[0], evidence.control[0]) == (6.0, -inf)


def test_a_missing_statistic_is_the_least_evidence() -> None:
    empty = replace(shift_finding((0, 0, 0, 0)), claimed=ClaimRow(timeline=Timeline()))
    evidence = peak_evidence(pair_runs([empty, peak_finding(-5.0, seed=0, is_control=True)]))
    assert evidence.shifted[0] < evidence.control[0]


def test_targets_of_one_seed_form_a_cluster_unless_there_is_only_one_seed() -> None:
    many = [
        shift_finding((0, 0, 1, 0), seed=seed, target=client(number), is_control=is_control)
        for seed in (4, 9)
        for number in (1, 2)
        for is_control in (False, True)
    ]
    assert peak_evidence(pair_runs(many)).clusters.tolist() == [0, 0, 1, 1]
    assert peak_evidence(pair_runs(many[:4])).clusters.tolist() == [0, 1]
    assert np.array_equal(
        peak_evidence(pair_runs(peak_findings([1, 2], [3, 4]))).clusters, [0, 1]
    )
