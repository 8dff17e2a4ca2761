"""A rule on leaks checks every matching row and never passes for missing ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.document import FindingsDocument
from overheard.gate.leaks import leak_verdicts
from overheard.gate.policy import LeakRule
from overheard.gate.verdict import RuleVerdict, Status
from tests.gate.documents import JsonObject, estimate, findings, refusal, run, summary_row


def rule(**changes: object) -> LeakRule:
    asked: JsonObject = {"name": "r", "question": "membership", "score": "membership_auc"}
    if not {"gain_at_most", "grows_at_most"} & set(changes):
        asked["no_better_than"] = 0.6
    return LeakRule.model_validate_json(json.dumps(asked | changes))


def said(
    asked: LeakRule, now: FindingsDocument, before: FindingsDocument | None = None
) -> list[RuleVerdict]:
    return list(leak_verdicts(asked, now, before, asked.straddles or "inconclusive"))


def statuses(
    asked: LeakRule, now: FindingsDocument, before: FindingsDocument | None = None
) -> list[Status]:
    return [verdict.status for verdict in said(asked, now, before)]


def test_no_better_than_follows_the_direction_of_the_score():
    # No better than .6: an AUC of .5 to .6 keeps that, and an error of .5 to .6 breaks ".7".
    auc = summary_row(0.5, 0.6)
    error = summary_row(0.5, 0.6, score="l1", better="lower")
    assert statuses(rule(), findings(auc)) == ["pass"]
    assert statuses(rule(no_better_than=0.4), findings(auc)) == ["fail"]
    assert statuses(rule(score="l1", no_better_than=0.7), findings(error)) == ["fail"]
    assert statuses(rule(score="l1", no_better_than=0.5), findings(error)) == ["pass"]
    assert statuses(rule(score="l1", no_better_than=0.55), findings(error)) == ["inconclusive"]
    (verdict,) = said(rule(score="l1", no_better_than=0.7), findings(error))
    assert (verdict.limit, verdict.figure_text) == ("at least 0.7", "0.55 (0.5 to 0.6)")
    assert verdict.subject == "bare; server; lira; 2 rounds"


def test_a_gain_limit_applies_in_both_directions_of_a_score():
    # .02 to .08 better than a guess
    error = summary_row(1.0, 1.2, score="l1", better="lower", gain=estimate(0.02, 0.08))
    assert statuses(rule(score="l1", gain_at_most=0.1), findings(error)) == ["pass"]
    assert statuses(rule(score="l1", gain_at_most=0.05), findings(error)) == ["inconclusive"]
    assert statuses(rule(score="l1", gain_at_most=0.0), findings(error)) == ["fail"]


def test_a_row_without_an_interval_is_inconclusive_even_if_straddling_passes():
    bare = findings(summary_row(None, None, value=estimate(None, None, 0.5)))
    (verdict,) = said(rule(straddles="pass"), bare)
    assert verdict.status == "inconclusive"
    assert "no interval" in verdict.why
    assert verdict.figure_text == "0.5"


def test_every_row_counts_and_filters_choose_among_them():
    now = findings(
        summary_row(0.7, 0.8),
        summary_row(attack="loss"),
        summary_row(observers=["server", "client/0"], attack="loss"),
        summary_row(attack="loss, about the cohort", about="cohort"),
        summary_row(0.7, 0.8, score="tpr"),
        summary_row(0.7, 0.8, question="label_shares"),
        summary_row(arm="noise"),
        arms=[run(), run("noise")],
    )
    assert statuses(rule(), now) == ["fail", "pass", "pass", "pass", "pass"]
    assert statuses(rule(arms=["noise"]), now) == ["pass"]
    assert statuses(rule(arms=["bare"], attacks=["lira"]), now) == ["fail"]
    assert statuses(rule(arms=["bare"], observers=["client/0", "server"]), now) == ["pass"]
    assert statuses(rule(arms=["bare"], about="cohort"), now) == ["pass"]


def test_missing_rows_are_inconclusive():
    now = findings(
        summary_row(), summary_row(arm="noise", attack="loss"), arms=[run(), run("noise")]
    )
    assert statuses(rule(score="auc"), now) == ["inconclusive"] * 2
    assert "membership_auc of membership" in said(rule(score="auc"), now)[0].why
    assert statuses(rule(arms=["bare", "nosie"]), now) == ["pass", "inconclusive"]
    assert said(rule(arms=["nosie"]), now)[0].why == "no such arm; arms: bare; noise"
    # "loss" was measured in the arm "noise" alone, "lira" in "bare" alone.
    *there, bare, noise = said(rule(attacks=["lira", "loss"]), now)
    assert [verdict.status for verdict in there] == ["pass", "pass"]
    assert (bare.subject, bare.status) == ("bare; loss", "inconclusive")
    assert (noise.subject, noise.status) == ("noise; lira", "inconclusive")
    assert statuses(rule(observers=["client/7"]), now) == ["inconclusive"] * 2


def test_an_unattacked_arm_does_not_pass():
    verdicts = said(rule(), findings(summary_row(), arms=[run(), run("deaf")]))
    assert [(verdict.subject, verdict.status) for verdict in verdicts] == [
        ("bare; server; lira; 2 rounds", "pass"),
        ("deaf", "inconclusive"),
    ]


def test_empty_findings_do_not_pass():
    assert statuses(rule(), findings(arms=[])) == ["inconclusive"]


def test_a_refusal_is_inconclusive_with_its_reason_unless_the_policy_allows_it():
    refused = [refusal(attack="loss", target=f"client/{who}") for who in range(3)]
    now = findings(summary_row(), refusals=refused)
    first, second = said(rule(), now)
    assert (first.status, second.status) == ("pass", "inconclusive")
    assert second.why == "refused for 3 targets, missing: a model"
    assert statuses(rule(may_be_refused=["loss"]), now) == ["pass", "excused"]
    allowed = rule(attacks=["lira", "loss"], may_be_refused=["loss"])
    assert statuses(allowed, now) == ["pass", "excused"]
    assert statuses(rule(question="shift", may_be_refused=["loss"]), now) == ["inconclusive"]


def test_a_rule_with_only_allowed_refusals_does_not_pass():
    now = findings(refusals=[refusal()])
    assert statuses(rule(may_be_refused=["lira"]), now) == ["excused", "inconclusive"]
    assert statuses(rule(), now) == ["inconclusive"]


def test_a_refusal_of_one_target_is_inconclusive():
    assert statuses(rule(), findings(summary_row(), refusals=[refusal()])) == [
        "pass",
        "inconclusive",
    ]


def test_single_rounds_are_left_out_unless_asked_for():
    now = findings(summary_row(), summary_row(0.7, 0.8, rounds=[0]), summary_row(rounds=[1]))
    assert statuses(rule(), now) == ["pass"]
    each = said(rule(rounds="each"), now)
    assert [verdict.status for verdict in each] == ["pass", "fail", "pass"]
    assert each[1].subject == "bare; server; lira; round 0"


def test_a_single_round_never_replaces_a_refusal_of_all_rounds():
    now = findings(summary_row(rounds=[0]), refusals=[refusal(rounds=[0, 1])])
    assert statuses(rule(), now) == ["inconclusive"]


def test_too_few_targets_or_runs_are_inconclusive_whatever_the_interval():
    now = findings(summary_row(0.7, 0.8, targets=4, seeds=2))
    assert statuses(rule(targets_at_least=4, seeds_at_least=2), now) == ["fail"]
    assert (
        said(rule(targets_at_least=5), now)[0].why == "too few targets: 4, the rule requires 5"
    )
    assert said(rule(seeds_at_least=3), now)[0].why == "too few runs: 2, the rule requires 3"
    assert statuses(rule(seeds_at_least=3), now) == ["inconclusive"]


def gained(low: float, high: float, **changes: object) -> JsonObject:
    return summary_row(gain=estimate(low, high), **changes)


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        # Before: .10 to .15; a growth of .05 at most.
        (0.05, 0.15, "pass"),  # by .15 - .10 = .05 at most
        (0.05, 0.17, "inconclusive"),  # by .07 at most, by .05 - .15 = -.10 at least
        (0.19, 0.30, "inconclusive"),  # by .04 at least
        (0.21, 0.30, "fail"),  # by .06 at least
    ],
)
def test_growth_is_judged_by_the_ends_of_both_intervals(
    low: float, high: float, status: Status
):
    # A hair more than .05, since .15 - .10 is not quite .05 in floats.
    asked, before = rule(grows_at_most=0.0500001), findings(gained(0.10, 0.15))
    assert statuses(asked, findings(gained(low, high)), before) == [status]


def test_growth_in_one_of_many_rows_fails_only_far_beyond_the_limit() -> None:
    # Growth by .15 to .45, with 4 degrees of freedom: among ten rows the lower end moves from
    # .3 - .15 to .3 - .15 * 5.60 / 2.78 = -.002; with a normal distribution to .3 - .15 * 1.43.
    few = {"basis": "runs", "degrees": 4.0}
    now, before = (
        findings(
            *(
                summary_row(arm=f"arm {n}", gain=estimate(low, low + 0.15) | few)
                for n in range(10)
            )
        )
        for low in (0.4, 0.1)
    )
    assert set(statuses(rule(grows_at_most=0.05), now, before)) == {"inconclusive"}
    assert statuses(rule(grows_at_most=0.05, arms=["arm 1"]), now, before) == ["fail"]


def test_growth_of_an_error_is_growth_of_its_gain():
    error: JsonObject = {"score": "l1", "better": "lower"}
    before = findings(gained(0.10, 0.15, **error))
    asked = rule(score="l1", grows_at_most=0.1)
    assert statuses(asked, findings(gained(0.40, 0.45, **error)), before) == ["fail"]
    assert statuses(asked, findings(gained(-0.40, -0.35, **error)), before) == ["pass"]


def test_reports_new_and_removed_rows():
    before = findings(gained(0.1, 0.2, attack="old"), gained(0.1, 0.2, rounds=[0, 1, 2]))
    now = findings(gained(0.1, 0.2, attack="young"), gained(0.1, 0.2))
    verdicts = said(rule(grows_at_most=1.0), now, before)
    assert {verdict.status for verdict in verdicts} == {"inconclusive"}
    assert [(verdict.subject, verdict.why.split(":")[0]) for verdict in verdicts] == [
        ("bare; server; young; 2 rounds", "new row"),
        ("bare; server; lira; 2 rounds", "new row"),
        ("bare; server; old; 2 rounds", "removed row"),
        ("bare; server; lira; 3 rounds", "removed row"),
    ]


def test_a_score_with_another_direction_is_another_row():
    before = findings(gained(0.1, 0.2, better="lower"))
    verdicts = said(rule(grows_at_most=1.0), findings(gained(0.1, 0.2)), before)
    assert [verdict.why.split(":")[0] for verdict in verdicts] == ["new row", "removed row"]


def test_without_earlier_findings_growth_is_inconclusive_and_says_how_to_give_them():
    (verdict,) = said(rule(grows_at_most=1.0), findings(summary_row()))
    assert verdict.status == "inconclusive"
    assert "--against" in verdict.why


def test_too_few_earlier_runs_are_inconclusive():
    before = findings(summary_row(seeds=1))
    asked = rule(grows_at_most=1.0, seeds_at_least=2)
    assert statuses(asked, findings(summary_row()), before) == ["inconclusive"]


ENDS = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)
ROWS = st.lists(ENDS, max_size=4).map(
    lambda every: [
        summary_row(*ends, attack=f"attack {place}") for place, ends in enumerate(every)
    ]
)


@given(ROWS, st.floats(0, 1), st.floats(0, 0.5))
def test_a_tighter_rule_never_lets_more_pass(rows: list[JsonObject], limit: float, by: float):
    order: list[Status] = ["fail", "inconclusive", "pass"]
    loose = statuses(rule(no_better_than=limit), findings(*rows))
    tight = statuses(rule(no_better_than=limit - by), findings(*rows))
    assert len(loose) == len(tight) == max(len(rows), 1)
    for one, other in zip(tight, loose, strict=True):
        assert order.index(one) <= order.index(other)


@given(ROWS, st.floats(0, 1))
def test_an_additional_row_only_makes_it_harder_to_fail(rows: list[JsonObject], limit: float):
    asked = rule(no_better_than=limit)
    more = statuses(asked, findings(*rows, summary_row(attack="another")))[: len(rows)]
    fewer = statuses(asked, findings(*rows))[: len(rows)]
    for status, before in zip(more, fewer, strict=True):
        assert status == before or (before, status) == ("fail", "inconclusive")
