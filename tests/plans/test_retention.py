"""A retention is a period for messages and one for results, or is refused."""

from datetime import date

import pytest

from overheard.plans.release_plan import ReleasePlan
from overheard.plans.retention import Period, Retention, parse_retention


def test_one_period_is_for_messages_and_results():
    month = Period(1, "month")
    assert parse_retention("1 month") == Retention(month, month)


def test_periods_are_told_apart_in_any_order_and_one_may_be_missing():
    both = Retention(Period(30, "day"), Period(3, "year"))
    assert parse_retention("messages 30 days, results 3 years") == both
    assert parse_retention("results 3 years,  messages 30 days") == both
    assert parse_retention("results 2 weeks") == Retention(None, Period(2, "week"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "as long as needed",
        "0 days",
        "-3 days",
        "5000 days",
        "messages 1 day, messages 2 days",
        "messages 1 day; results 2 days",
        "30",
        "days 30",
    ],
)
def test_other_forms_are_refused_with_the_right_one(text: str):
    with pytest.raises(ValueError, match=r"messages 30 days|at most 1000|at least 1"):
        parse_retention(text)
    with pytest.raises(ValueError, match="retention"):
        ReleasePlan(retention=text)


def test_months_and_years_end_on_a_day_of_the_calendar():
    assert Period(1, "month").after(date(2024, 1, 31)) == date(2024, 2, 29)
    assert Period(1, "year").after(date(2024, 2, 29)) == date(2025, 2, 28)
    assert Period(13, "month").after(date(2026, 12, 5)) == date(2028, 1, 5)
    assert Period(2, "week").after(date(2026, 12, 20)) == date(2027, 1, 3)
