"""Findings as tables and text."""

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.parties import COHORT, SERVER, client
from overheard.core.scorer import Better, Score
from overheard.findings.finding import Finding
from overheard.findings.frame import COLUMNS, score_columns
from overheard.findings.html import MAX_LENGTH, html_table, html_text
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_party,
    shorten,
    shorten_attack_names,
)
from overheard.findings.number_format import (
    BARE_NUMBER,
    Measure,
    format_bytes,
    format_duration,
    format_number,
)
from overheard.findings.score_row import ScoreRow
from overheard.findings.unchecked_claims import (
    GuessExclusion,
    count_guess_exclusions,
)
from overheard.report.defense_effects import compare_rows
from overheard.statistics.estimate import Estimate
from tests.runs.audits import shares_finding


def row(low: float | None, high: float | None, better: Better) -> ScoreRow:
    value = Estimate(0.5, low, high)
    return ScoreRow("none", (), "a", "b", (0,), "c", better, value, {}, {}, None, None, 1, 1)


@pytest.mark.parametrize(
    ("after", "better", "expected"),
    [
        ((0.5, 0.9), "lower", "reads less"),
        ((0.5, 0.9), "higher", "reads more"),
        ((0.0, 0.1), "lower", "reads more"),
        ((0.0, 0.1), "higher", "reads less"),
        ((0.3, 0.9), "lower", "no clear difference"),
        ((None, None), "lower", "too few"),
    ],
)
def test_only_disjoint_intervals_show_a_difference(
    after: tuple[float | None, float | None], better: Better, expected: str
) -> None:
    assert compare_rows(row(0.2, 0.4, better), row(*after, better)) == expected


def test_a_score_fills_its_columns():
    cells = score_columns(
        Score("l1", 0.5, "lower", {"uniform": 0.75, "prior": 0.6}, {"told": 0.2})
    )
    assert cells == {
        "score": "l1",
        "better": "lower",
        "value": 0.5,
        "best guess": 0.6,
        "gain": 0.6 - 0.5,
        "uninformed guesses": {"uniform": 0.75, "prior": 0.6},
        "informed guesses": {"told": 0.2},
    }
    assert cells.keys() < COLUMNS.keys()
    assert score_columns(None) == {}


HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m\"'&"


def test_escapes_markup_and_unprintable_characters():
    expected = r"&lt;script&gt;alert(1)&lt;/script&gt;\u202e\x1b[31m&quot;&#x27;&amp;"
    assert html_text(HOSTILE) == expected


def test_escapes_every_text_of_a_table():
    page = html_table(HOSTILE, (HOSTILE,), [(HOSTILE,)], HOSTILE)
    assert page.count("&lt;script&gt;") == 4
    for raw in ("<script", "\u202e", "\x1b"):
        assert raw not in page


def test_a_long_text_is_cut():
    assert len(html_text("a" * 10_000)) == MAX_LENGTH


@given(st.text())
def test_removes_control_characters_direction_marks_and_breaks(text: str) -> None:
    for character in make_printable(text):
        assert unicodedata.category(character)[0] != "C"
        assert character not in "\u2028\u2029"


@given(st.text(alphabet="abc <>&'\"=$é八שב", max_size=40))
def test_keeps_printable_characters(text: str) -> None:
    assert make_printable(text) == text


@given(st.text(), st.integers(2, 30))
def test_a_shortened_name_is_at_most_this_long(text: str, length: int) -> None:
    assert len(shorten(text, length)) <= length


def test_names_parties_and_pooled_observers() -> None:
    assert name_observers((SERVER,)) == "the server"
    assert name_observers((SERVER, client(1), client(2))) == (
        "the server, client 1 and client 2 together"
    )
    assert name_party(COHORT) == "all clients together"


def test_drops_what_all_attack_names_share() -> None:
    names = [
        "whispers, with 300 virtual clients",
        "whispers, auxiliary examples distorted by 0.5, with 300 virtual clients",
        "decaf(steps=2, sizes=(1, 2)), with 300 virtual clients, expecting iid",
    ]
    assert list(shorten_attack_names(names).values()) == [
        "whispers",
        "whispers (auxiliary examples distorted by 0.5)",
        "decaf(steps=2, sizes=(1, 2)) (expecting iid)",
    ]
    assert shorten_attack_names(["decaf, about the cohort"]) == {
        "decaf, about the cohort": "decaf"
    }
    assert shorten_attack_names([]) == {}


def test_joiners_are_shown_as_parts_of_words() -> None:
    assert make_printable("ක්\u200dෂය") == "ක්\u200dෂය"
    assert make_printable("a\u202eb") == r"a\u202eb"


def test_formats_values_in_the_unit_of_the_measure() -> None:
    points = Measure("Error", "\u00a0points", 100.0)
    assert points.format(0.042) == "4.2\u00a0points"
    assert points.format_interval(Estimate(0.04, 0.031, 0.052)) == "3.1 to 5.2\u00a0points"
    assert BARE_NUMBER.format(0.25) == "0.25"


@given(st.floats(-1e6, 1e6))
def test_formatted_numbers_are_close_to_the_value(value: float) -> None:
    written = float(format_number(value).replace("−", "-"))
    assert abs(written - value) <= max(0.06 * abs(value), 5e-7)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (2**20, "1.0 MiB"),
        (5 * 2**50, "5120 TiB"),
    ],
)
def test_bytes_use_the_largest_unit_that_fits(count: int, words: str) -> None:
    assert format_bytes(float(count)).replace("\u00a0", " ") == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.5, "0.50 s"), (59, "59 s"), (60, "1.0 min"), (7200, "2.0 h")]
)
def test_times_use_the_largest_unit_that_fits(seconds: float, words: str) -> None:
    assert format_duration(float(seconds)).replace("\u00a0", " ") == words


def test_intervals_of_percentages_end_at_0_and_100_and_gains_do_not() -> None:
    share, wide = Measure("Share", " %", 100.0), Estimate(0.4, -0.8, 1.6)
    assert share.format_interval(wide) == "0 to 100 %"
    assert share.format_gain_interval(wide) == "−80 to 160 %"
    assert Measure("Rounds", " rounds", 1.0).format_interval(wide) == "−0.80 to 1.6 rounds"
    assert Measure("Error", " points", 100.0, 0.0).format_interval(wide) == "0 to 160 points"


def test_a_cut_interval_ends_where_its_score_does() -> None:
    # A score from 0 to 2, shown as half of it in percent.
    distance, wide = Measure("L1", " %", 50.0), Estimate(1.9, -0.1, 2.5, "runs", 4.0)
    assert distance.cut(wide) == Estimate(1.9, 0.0, 2.0, "runs", 4.0)
    inside = Estimate(1.0, 0.5, 1.5)
    assert distance.cut(inside) == inside
    assert distance.cut(Estimate(1.0, None, None)) == Estimate(1.0, None, None)


GUESS = {"uniform": (0.5, 0.5), "auxiliary prior": (0.25, 0.75)}


def claim(*shares: float, reach: float | None = None) -> Finding:
    finding = shares_finding("recorded", client(0), (1.0, 0.0), shares, reach=reach)
    return replace(finding, true=None, scores=(), guesses=GUESS)


def test_counts_the_intervals_that_exclude_the_guess() -> None:
    # 0.6 and 0.4 +- 0.1 exclude 0.25 and 0.75; 0.3 and 0.7 +- 0.1 do not.
    exclusion = count_guess_exclusions([claim(0.6, 0.4, reach=0.1), claim(0.3, 0.7, reach=0.1)])
    assert exclusion == GuessExclusion("auxiliary prior", 2, 4)
