"""Summaries of findings: means, guesses, gains and intervals."""

from dataclasses import replace

import pytest
import torch

from overheard.auditing.summary import summarise
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, Party, client
from overheard.core.scorer import Better, Score
from overheard.core.seeds import Seed
from overheard.findings.finding import Cell, ClaimRow, Finding
from overheard.findings.score_row import ScoreRow
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.scorer import MembershipScorer
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_auc_of_trials
from tests.auditing.identity_findings import identity_finding as recognised
from tests.auditing.identity_findings import identity_run

SEED = Seed(3)


def found(
    value: float,
    uninformed: dict[str, float],
    *,
    target: Party = client(0),  # noqa: B008 - a value that never changes
    seed: int = 0,
    arm: str = "none",
    rounds: tuple[int, ...] = (0, 1),
    better: Better = "lower",
) -> Finding:
    cell = Cell(arm, seed, (SERVER,), "decaf", "Decaf()", "label_shares", rounds)
    score = Score("l1", value, better, uninformed, {"told": value / 2})
    return Finding(cell, (target,), ClaimRow((1.0,)), ClaimRow((1.0,)), (score,))


def test_averages_over_targets_and_selects_the_best_guess():
    # values 0.2, 0.4 -> 0.3; guess a: 0.5, 0.7 -> 0.6; guess b: 0.1, 1.5 -> 0.8
    # The best single guess is a, although b is better on the first target. Gain 0.6 - 0.3.
    findings = [
        found(0.2, {"a": 0.5, "b": 0.1}, target=client(0)),
        found(0.4, {"a": 0.7, "b": 1.5}, target=client(1)),
    ]
    (row,) = summarise(findings, SEED)
    assert row.value.mean == pytest.approx(0.3)
    assert dict(row.uninformed) == {"a": pytest.approx(0.6), "b": pytest.approx(0.8)}
    assert row.best_uninformed == pytest.approx(0.6)
    assert row.gain is not None
    assert row.gain.mean == pytest.approx(0.3)
    assert row.references["told"] == pytest.approx(0.15)
    assert (row.targets, row.seeds) == (2, 1)


def test_the_gain_follows_the_direction_of_the_score():
    # the best guess is b at 0.6; 0.5 - 0.6
    (row,) = summarise([found(0.5, {"a": 0.2, "b": 0.6}, better="higher")], SEED)
    assert row.best_uninformed == pytest.approx(0.6)
    assert row.gain is not None
    assert row.gain.mean == pytest.approx(-0.1)


def test_an_interval_ends_where_its_score_does_and_that_of_a_gain_does_not():
    # L1 of 0 and 0.4: 0.2 plus or minus 12.7 x 0.2, cut at 0 and 2; gains of 0.5 and -0.3.
    findings = [
        found(0.0, {"a": 0.5}, target=client(0)),
        found(0.4, {"a": 0.1}, target=client(1)),
    ]
    (row,) = summarise(findings, SEED)
    assert (row.value.low, row.value.high) == (0.0, 2.0)
    assert row.gain is not None
    assert row.gain.low is not None
    assert row.gain.low < -2


def test_the_gain_is_paired_by_target():
    # Gains are 0.5 for both targets, so their interval has no width, though values differ.
    findings = [
        found(0.9, {"a": 1.4}, target=client(0)),
        found(1.0, {"a": 1.5}, target=client(1)),
    ]
    (row,) = summarise(findings, SEED)
    assert row.gain is not None
    assert row.gain.low == pytest.approx(0.5)
    assert row.gain.high == pytest.approx(0.5)
    # The values 0.9 and 1.0 have a standard error of 0.05, times 12.71 at 1 degree of freedom.
    assert row.value.high == pytest.approx(0.95 + 12.706 * 0.05, abs=1e-3)


def test_one_figure_alone_has_no_interval():
    assert summarise([], SEED) == ()
    (row,) = summarise([found(0.5, {"a": 1.0})], SEED)
    assert row.value.mean == 0.5
    assert (row.value.low, row.value.high) == (None, None)
    assert row.gain is not None
    assert (row.gain.low, row.gain.high) == (None, None)
    # Without a guess there is no gain.
    (row,) = summarise([found(0.5, {})], SEED)
    assert (row.best_uninformed, row.gain) == (None, None)


def test_there_is_one_row_per_arm_and_rounds_over_all_seeds():
    findings = [
        found(0.1 * seed, {"a": 1.0}, seed=seed, arm=arm, rounds=rounds)
        for seed in (0, 1, 2)
        for arm in ("none", "noise")
        for rounds in ((0, 1), (0,))
    ]
    rows = summarise(findings, SEED)
    assert [(row.arm, row.rounds) for row in rows] == [
        ("none", (0, 1)),
        ("none", (0,)),
        ("noise", (0, 1)),
        ("noise", (0,)),
    ]
    assert {row.seeds for row in rows} == {3}
    assert rows[0].value.mean == pytest.approx(0.1)  # of 0, 0.1, 0.2


def test_the_same_seed_gives_the_same_interval_to_the_last_bit():
    findings = identity_run(1.0)
    assert summarise(findings, SEED) == summarise(findings, SEED)
    assert summarise(findings, SEED) != summarise(findings, Seed(4))


def test_questions_about_users_have_the_control_as_a_reference():
    # Named right: both of the run, none of the control.
    findings = [recognised((1, 0, 0, 0), "a", number) for number in range(2)]
    findings += [recognised((0, 1, 0, 0), "a", n, is_control=True) for n in range(2)]
    row = next(row for row in summarise(findings, SEED) if row.score == "top1")
    assert (row.value.mean, row.targets) == (1, 2)
    assert dict(row.references) == {"IID control": 0}


def test_a_user_counts_once():
    # Every user is identified always or never: the strongest possible correlation.
    clumped = [recognised((1, 0), "ab"[n // 8 % 2], n, users=("a", "b")) for n in range(16)]
    (row,) = [row for row in summarise(clumped, SEED) if row.score == "top1"]
    assert row.value.mean == 0.5
    # Two users at 0 and 1, less one guess: a standard error of 0.5, times 12.71 at 1 degree of
    # freedom. The interval of the share itself ends at 0 and 1.
    assert (row.value.low, row.value.high) == (0.0, 1.0)
    assert row.gain is not None
    assert row.gain.high == pytest.approx(row.gain.mean + 12.706 * 0.5, abs=1e-3)


def test_pseudonyms_of_one_client_count_once():
    # Four clients, each with the same value under ten pseudonyms.
    values = {0: 0.1, 1: 0.2, 2: 0.5, 3: 0.8}
    by_client = [found(value, {}, target=client(n)) for n, value in values.items()]
    by_round = [
        replace(one, targets=(Party(f"anon/{number}-{n}"),), client=one.target)
        for number in range(10)
        for n, one in enumerate(by_client)
    ]
    (plain,), (apart,) = summarise(by_client, SEED), summarise(by_round, SEED)
    assert apart.value.low == pytest.approx(plain.value.low)
    assert apart.value.degrees == plain.value.degrees == 3
    # A client of a name holds other data in another run: 8 clients of 2 runs.
    again = [replace(one, cell=replace(one.cell, seed=1)) for one in by_round]
    (both,) = summarise([*by_round, *again], SEED)
    assert both.value.degrees == 6


def test_the_open_set_score_has_the_base_rate_as_a_reference():
    # One of four is a stranger: 1/4 * 3/4.
    findings = [
        replace(one, scores=(*one.scores, Score("unseen", 0.1, "lower", {"even": 0.25}, {})))
        for one in identity_run(1.0, all_users=3, strangers=1, updates=1)
    ]
    row = next(row for row in summarise(findings, SEED) if row.score == "unseen")
    assert row.references["the base rate"] == pytest.approx(3 / 16)


def heard_members(members: list[float], *, target: int = 0, seed: int = 0) -> Finding:
    """Score members of these scores, and 100 non-members from 0 to 0.99."""
    claim = Membership(torch.tensor([*members, *(number / 100 for number in range(100))]))
    truth = Membership(torch.tensor([1.0] * len(members) + [-1.0] * 100))
    scorer = MembershipScorer()
    return Finding(
        Cell("none", seed, (SERVER,), "lira", "Lira()", "membership", (0,)),
        (client(target),),
        ClaimRow.of(claim),
        ClaimRow.of(truth),
        scorer.score(claim, truth, scorer.guesses(truth, Knowledge(2))),
    )


def rows_by_score(findings: list[Finding]) -> dict[str, ScoreRow]:
    return {row.score: row for row in summarise(findings, SEED)}


def test_clients_with_equal_aucs_leave_the_uncertainty_of_their_records():
    # Both rank each of 3 members above all 100 non-members, which they share.
    row = rows_by_score([heard_members([2.0] * 3, target=one) for one in (0, 1)])[
        "membership_auc"
    ]
    exact = estimate_auc_of_trials(1.0, 6, 100)
    assert (row.value.mean, row.value.low, row.value.high) == (1.0, exact.low, 1.0)
    assert row.gain is not None
    assert exact.low is not None
    assert exact.low < 0.85
    assert row.gain.low == pytest.approx(exact.low - 0.5)
    assert row.gain.high == 0.5


def test_no_member_found_in_any_run_does_not_show_that_none_can_be():
    # 0 of 10 members in 5 runs: (1 - p)^10 = 0.025 at the upper end; guessing finds 0.01.
    rows = rows_by_score([heard_members([0.5] * 2, seed=seed) for seed in range(5)])
    gain = rows["tpr_at_1_percent"].gain
    assert gain is not None
    assert gain.mean == pytest.approx(-0.01)
    assert gain.high == pytest.approx(1 - 0.025 ** (1 / 10) - 0.01)


def test_clients_that_differ_more_than_their_records_keep_their_interval():
    # AUCs 1 and 0.5: Student's interval of two runs is 0.75 +- 12.7 * 0.25. The score ends at 0
    # and 1; the gain, 0.25 on average, does not.
    rows = rows_by_score(
        [heard_members([2.0] * 50, seed=0), heard_members([0.495] * 50, seed=1)]
    )
    value = rows["membership_auc"].value
    assert value.mean == pytest.approx(0.75)
    assert (value.low, value.high) == (0.0, 1.0)
    assert value.basis == "runs"
    gain = rows["membership_auc"].gain
    assert gain is not None
    assert gain.high == pytest.approx(0.25 + 12.706 * 0.25, abs=1e-3)


def test_one_claim_alone_has_no_interval_over_clients_or_runs():
    value = rows_by_score([heard_members([2.0] * 3)])["membership_auc"].value
    assert value == Estimate(1.0, None, None)
