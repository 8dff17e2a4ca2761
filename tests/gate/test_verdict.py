"""Verdicts on intervals, with examples and generated inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.document_rows import IntervalEstimate
from overheard.gate.verdict import (
    Limit,
    OverlapStatus,
    RuleVerdict,
    Side,
    Status,
    format_number,
    judge_interval,
    overall_status,
)

NUMBERS = st.floats(-1e6, 1e6)
ENDS = st.tuples(NUMBERS, NUMBERS).map(sorted)
SIDES = st.sampled_from(["at most", "at least"])


def bounds(low: float | None, high: float | None) -> IntervalEstimate:
    return IntervalEstimate(mean=low if high is None else high, low=low, high=high)


@pytest.mark.parametrize(
    ("low", "high", "below", "above"),
    [
        (0.4, 0.5, "pass", "fail"),  # all of it below .6
        (0.5, 0.7, "inconclusive", "inconclusive"),
        (0.7, 0.8, "fail", "pass"),
        (0.5, 0.6, "pass", "inconclusive"),  # at the limit is within it, on both sides
        (0.6, 0.7, "inconclusive", "pass"),
        (0.6, 0.6, "pass", "pass"),
        (None, 0.5, "inconclusive", "inconclusive"),
        (0.5, None, "inconclusive", "inconclusive"),
        (None, None, "inconclusive", "inconclusive"),
    ],
)
def test_judges_the_whole_interval_on_both_sides(
    low: float | None, high: float | None, below: Status, above: Status
):
    assert judge_interval(bounds(low, high), Limit("at most", 0.6), "inconclusive")[0] == below
    assert judge_interval(bounds(low, high), Limit("at least", 0.6), "inconclusive")[0] == above


@pytest.mark.parametrize("straddling", ["pass", "fail", "inconclusive"])
def test_the_overlap_status_applies_to_overlaps_only(straddling: OverlapStatus):
    limit = Limit("at most", 0.6)
    assert judge_interval(bounds(0.5, 0.7), limit, straddling)[0] == straddling
    assert judge_interval(bounds(0.5, 0.6), limit, straddling)[0] == "pass"
    assert judge_interval(bounds(0.7, 0.8), limit, straddling)[0] == "fail"
    assert judge_interval(bounds(None, None), limit, straddling)[0] == "inconclusive"


@given(SIDES, NUMBERS, ENDS, st.floats(0, 10), st.floats(0, 10))
def test_a_wider_interval_is_never_more_conclusive(
    side: Side, limit: float, ends: list[float], down: float, up: float
):
    low, high = ends
    narrow = judge_interval(bounds(low, high), Limit(side, limit), "inconclusive")[0]
    wide = judge_interval(bounds(low - down, high + up), Limit(side, limit), "inconclusive")[0]
    assert wide in {narrow, "inconclusive"}


@given(SIDES, NUMBERS, ENDS, st.floats(0, 10))
def test_a_tighter_limit_never_improves_the_status(
    side: Side, limit: float, ends: list[float], by: float
):
    order: list[Status] = ["fail", "inconclusive", "pass"]
    loose = judge_interval(bounds(*ends), Limit(side, limit), "inconclusive")[0]
    tighter = Limit(side, limit - by if side == "at most" else limit + by)
    tight = judge_interval(bounds(*ends), tighter, "inconclusive")[0]
    assert order.index(tight) <= order.index(loose)


@given(NUMBERS, ENDS)
def test_both_sides_are_symmetric(limit: float, ends: list[float]):
    low, high = ends
    one = judge_interval(bounds(low, high), Limit("at most", limit), "inconclusive")
    other = judge_interval(bounds(-high, -low), Limit("at least", -limit), "inconclusive")
    assert one == other


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ([], "inconclusive"),
        (["pass", "pass"], "pass"),
        (["pass", "excused"], "pass"),
        (["excused"], "inconclusive"),
        (["pass", "inconclusive"], "inconclusive"),
        (["pass", "inconclusive", "fail"], "fail"),
    ],
)
def test_a_policy_passes_only_if_every_rule_does(statuses: list[Status], status: Status):
    assert overall_status([RuleVerdict("r", "s", "w", one, "") for one in statuses]) == status


def test_writes_a_value_with_its_interval():
    def told(mean: float | None, low: float | None, high: float | None) -> str:
        figure = IntervalEstimate(mean=mean, low=low, high=high)
        return RuleVerdict("r", "s", "w", "pass", "", figure).figure_text

    assert told(0.5926, 0.5684, 0.609) == "0.5926 (0.5684 to 0.609)"
    assert told(0.5, None, 0.6) == "0.5"
    assert told(None, None, None) == ""
    assert RuleVerdict("r", "s", "w", "pass", "").figure_text == ""
    assert format_number(-1234.5) == "-1,234"
    assert len(format_number(1e300)) < 10


def test_the_failing_end_is_wider_among_many_rows():
    # 0.65 (0.61 to 0.69) at 1.96 standard errors of 0.0204; 2.5 % of 10 rows: 2.81 of them, so
    # that the end is 0.593.
    figure = IntervalEstimate(mean=0.65, low=0.61, high=0.69)
    limit = Limit("at most", 0.6)
    assert judge_interval(figure, limit, "inconclusive")[0] == "fail"
    assert judge_interval(figure, limit, "inconclusive", 10) == (
        "inconclusive",
        "beyond the limit, but not clearly among 10 rows",
    )
    assert judge_interval(figure, Limit("at most", 0.59), "inconclusive", 10)[0] == "fail"
    mirrored = IntervalEstimate(mean=-0.65, low=-0.69, high=-0.61)
    assert judge_interval(mirrored, Limit("at least", -0.6), "pass", 10)[0] == "pass"
    assert judge_interval(mirrored, Limit("at least", -0.59), "pass", 10)[0] == "fail"


def test_the_passing_end_does_not_depend_on_the_number_of_rows():
    figure = IntervalEstimate(mean=0.55, low=0.51, high=0.59)
    assert judge_interval(figure, Limit("at most", 0.6), "inconclusive", 1000)[0] == "pass"


def test_few_degrees_of_freedom_widen_the_failing_end():
    # Two rows at 1 degree of freedom: 25.45 / 12.71 times as far as the 95 % end.
    figure = IntervalEstimate(mean=1.0, low=0.8, high=1.2, basis="runs", degrees=1.0)
    assert judge_interval(figure, Limit("at most", 0.61), "inconclusive", 2)[0] != "fail"
    assert judge_interval(figure, Limit("at most", 0.59), "inconclusive", 2)[0] == "fail"
