"""Rows on shift detection compare many runs with their controls."""

from dataclasses import replace
from math import inf

import pytest

from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.findings.finding import ClaimRow, Finding
from overheard.findings.score_row import ScoreRow
from overheard.questions.shift.statistics.detection import detection_rows
from tests.auditing.shift_findings import ROUNDS, peak_finding, peak_findings, shift_finding

SEED = Seed(2)


def rows(findings: list[Finding]) -> dict[str, ScoreRow]:
    all_rows = detection_rows(findings, SEED)
    by_score = {row.score: row for row in all_rows}
    assert len(by_score) == len(all_rows)
    return by_score


def test_shifts_that_peak_above_all_controls_have_an_auc_of_one() -> None:
    got = rows(peak_findings([5, 6, 7, 8], [1, 2, 3, 4]))["auc"]
    assert (got.value.mean, got.best_uninformed) == (1.0, 0.5)
    assert got.gain.mean == 0.5
    assert got.gain.low > 0
    assert (got.seeds, got.targets, got.rounds, got.question) == (4, 1, ROUNDS, "shift")


def test_similar_shifts_and_controls_have_an_inconclusive_auc() -> None:
    # Alternating ranks: 1 3 5 7 against 2 4 6 8 make 6 of 16 pairs correct.
    got = rows(peak_findings([1, 3, 5, 7], [2, 4, 6, 8]))["auc"]
    assert got.value.mean == pytest.approx(6 / 16)
    assert got.gain.low < 0 < got.gain.high


def test_the_auc_at_the_true_round_ignores_other_rounds() -> None:
    # A value of 9 in round 0 of every run hides the shift's 2 in the peak, not in its round.
    findings = [
        shift_finding((9.0, 0.0, 2.0 * (not is_control), 0.0), seed=seed, is_control=is_control)
        for seed in range(5)
        for is_control in (False, True)
    ]
    got = rows(findings)
    assert got["auc"].value.mean == 0.5
    assert got["auc_told"].value.mean == 1.0


def test_power_needs_enough_controls() -> None:
    some = rows(peak_findings([50.0] * 18, list(map(float, range(18)))))
    enough = rows(peak_findings([50.0] * 19, list(map(float, range(19)))))
    assert not {"power_at_5", "power_at_1"} & some.keys()
    assert enough["power_at_5"].value.mean == 1.0
    assert enough["power_at_5"].best_uninformed == 0.05
    assert "power_at_1" not in enough


def alarmed(pairs_of_statistics: list[tuple[tuple[float, ...], tuple[float, ...]]]) -> dict:
    findings = []
    for seed, (shifted, control) in enumerate(pairs_of_statistics):
        findings.append(shift_finding(shifted, seed=seed, threshold=1.0))
        findings.append(shift_finding(control, seed=seed, threshold=1.0, is_control=True))
    return rows(findings)


def test_counts_detections_early_alarms_and_false_alarms() -> None:
    # The shift comes in round 2. Alarms: at 2 (delay 0), at 3 (delay 1), at 1 (too early),
    # none. Controls: at 3, none, none, at 0; observed: 4 + 4 + 4 + 1 rounds.
    got = alarmed(
        [
            ((0, 0, 2, 2), (0, 0, 0, 2)),
            ((0, 0, 0, 2), (0, 0, 0, 0)),
            ((0, 2, 2, 2), (0, 0, 0, 0)),
            ((0, 0, 0, 0), (2, 0, 0, 0)),
        ]
    )
    assert got["detection_rate"].value.mean == pytest.approx(2 / 4)
    assert got["detection_rate"].best_uninformed == pytest.approx(0.1)
    assert got["false_alarm_rate"].value.mean == pytest.approx(2 / 4)
    assert dict(got["false_alarm_rate"].references) == {"stated": pytest.approx(0.1)}
    assert got["false_alarm_rate"].gain is None
    assert got["rounds_between_false_alarms"].value.mean == pytest.approx(13 / 2)
    assert got["median_delay"].value.mean == 0.5


def test_without_false_alarms_the_time_between_them_has_a_lower_bound() -> None:
    got = alarmed([((0, 0, 2, 0), (0, 0, 0, 0))] * 3)["rounds_between_false_alarms"]
    assert got.value.mean == inf
    assert got.value.low == pytest.approx(12 / 3.6889, rel=1e-4)


def test_without_detections_there_is_no_delay() -> None:
    assert "median_delay" not in alarmed([((0, 0, 0, 0), (0, 0, 0, 0))])


def test_exact_controls_have_rows_of_their_own() -> None:
    findings = []
    for seed in range(20):
        findings.append(shift_finding((0, 0, 2, 0), seed=seed, threshold=1.0))
        for control, peak in (("natural", 3.0 * (seed < 5)), ("exact", 1.5 * (seed < 1))):
            one = shift_finding((0, 0, peak, 0), seed=seed, threshold=1.0, is_control=True)
            findings.append(replace(one, cell=replace(one.cell, control=control)))
    got = rows(findings)
    # Five of 20 natural controls peak above every shift, and no exact one does.
    assert got["auc"].value.mean == pytest.approx(15 / 20)
    assert got["auc_exact"].value.mean == 1.0
    assert got["false_alarm_rate"].value.mean == pytest.approx(5 / 20)
    assert got["false_alarm_rate_exact"].value.mean == pytest.approx(1 / 20)
    assert dict(got["false_alarm_rate_exact"].references) == {"stated": pytest.approx(0.1)}
    assert (got["power_at_5"].value.mean, got["power_at_5_exact"].value.mean) == (0.0, 1.0)
    # Where only exact controls were run, the headline is against them.
    alone = rows([one for one in findings if one.cell.control != "natural"])
    assert alone["auc"].value.mean == 1.0
    assert "auc_exact" not in alone


def silent(finding: Finding) -> Finding:
    """Return the finding of an attack that states a rate and no threshold."""
    assert finding.claimed.timeline is not None
    timeline = replace(
        finding.claimed.timeline, threshold=None, false_alarm_rate=0.1, alarm=None
    )
    return replace(finding, claimed=ClaimRow(timeline=timeline))


def test_rates_are_over_runs_with_a_threshold_and_the_others_are_counted() -> None:
    findings = [
        shift_finding((0, 0, 2, 0), seed=0, threshold=1.0),
        shift_finding((2, 0, 0, 0), seed=0, threshold=1.0, is_control=True),
        silent(shift_finding((0, 0, 2, 0), seed=1)),
        shift_finding((0, 0, 0, 0), seed=1, threshold=1.0, is_control=True),
        shift_finding((0, 0, 0, 0), seed=2, threshold=1.0),
        silent(shift_finding((2, 0, 0, 0), seed=2, is_control=True)),
    ]
    got = rows(findings)
    # Of two shifts with a threshold one is detected, of two controls one raises an alarm.
    assert got["detection_rate"].value.mean == 0.5
    assert got["false_alarm_rate"].value.mean == 0.5
    assert got["not_calibrated"].value.mean == pytest.approx(2 / 6)
    assert got["not_calibrated"].better == "lower"
    # A rank needs no threshold.
    assert got["auc"].seeds == 3


def test_an_attack_that_is_calibrated_nowhere_raises_no_alarm() -> None:
    got = rows([silent(one) for one in peak_findings([1, 2], [3, 4])])
    assert got.keys() == {"auc", "auc_told", "not_calibrated"}
    assert got["not_calibrated"].value.mean == 1.0


def test_without_controls_or_shifts_there_are_no_rows() -> None:
    shifted = [peak_finding(9.0, seed=seed) for seed in range(4)]
    controls = [peak_finding(1.0, seed=seed, is_control=True) for seed in range(4)]
    assert detection_rows(shifted, SEED) == detection_rows(controls, SEED) == ()
    assert detection_rows([], SEED) == ()


def test_targets_without_a_shift_count_neither_as_shifts_nor_as_controls() -> None:
    findings = peak_findings([5, 6], [1, 2])
    for seed in (0, 1):
        findings.append(shift_finding((9, 9, 9, 9), seed=seed, target=client(2), since=None))
        findings.append(
            shift_finding((9, 9, 9, 9), seed=seed, target=client(2), is_control=True)
        )
    got = rows(findings)["auc"]
    assert (got.value.mean, got.targets) == (1.0, 1)


def test_attacks_have_separate_rows() -> None:
    findings = [
        shift_finding((0, 0, value, 0), seed=seed, is_control=is_control, attack=attack)
        for seed in (0, 1)
        for attack, value in (("blunt", 0.0), ("sharp", 3.0))
        for is_control in (False, True)
    ]
    auc_rows = [row for row in detection_rows(findings, SEED) if row.score == "auc"]
    assert [row.attack for row in auc_rows] == ["blunt", "sharp"]
    assert {row.value.mean for row in auc_rows} == {0.5}
