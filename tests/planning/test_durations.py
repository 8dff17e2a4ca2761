"""Durations are read as people write them."""

import pytest

from overheard.planning.durations import describe_duration, parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), (" 2h ", 7200)])
def test_reads_seconds_minutes_and_hours(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", "m", "0s", "-5m", "1.5h", "10 m", "10M", "١m", "99999999h", "10m\n5s"]
)
def test_refuses_what_is_no_duration(text):
    with pytest.raises(ValueError, match="is not a duration: give a whole number with a unit"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (89.0, "89 s"), (90.0, "2 min"), (5400.0, "1.5 h")]
)
def test_describes_durations_with_about_two_digits(seconds, text):
    assert describe_duration(seconds) == text
