"""A terminal begins as the page does, and shows its table in any width and encoding."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from overheard.auditing.threat_results import with_verdicts
from overheard.cli.summary.print_summary import AuditSummary, print_summary
from overheard.cli.summary.summary_json import summary_json
from overheard.cli.summary.thumbnail import PLAIN, UNICODE, draw_bar, print_thumbnail
from overheard.findings.audit import Audit
from overheard.findings.privacy.epsilon_rows import RunCriticism
from overheard.report.first_page.first_lines import first_lines
from overheard.report.first_page.gain_bar import GainBar
from overheard.report.page import render_page
from tests.auditing.epsilon_audits import LOCAL, audit_of, noisy_finding


def printed(audit: Audit, width: int, encoding: str = "utf-8", *, colours: bool = False) -> str:
    """The table as a terminal of this width and encoding gets it."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(
        file=file,
        width=width,
        force_terminal=colours,
        color_system="standard" if colours else None,
        highlight=False,
    )
    print_thumbnail(audit.arm_results, console)
    file.flush()
    return raw.getvalue().decode(encoding)


def with_first_arm(audit: Audit, name: str) -> Audit:
    """Return the first arm of the audit alone, by another name."""
    findings = tuple(
        replace(one, cell=replace(one.cell, arm=name))
        for one in audit.findings
        if one.cell.arm == audit.arms[0].arm
    )
    return with_verdicts(
        replace(audit, arms=(replace(audit.arms[0], arm=name),), findings=findings)
    )


def test_a_bar_runs_from_guessing_to_a_perfect_claim() -> None:
    assert draw_bar(GainBar(0.5, 0.3, 0.7, None), 12, PLAIN) == "|###==--...|"
    assert draw_bar(GainBar(1.0, None, None, None), 12, PLAIN) == "|##########|"
    assert draw_bar(GainBar(-0.5, -1.0, 0.2, None), 12, PLAIN) == "|--........|"
    # A gain too small for a column is drawn as one; no score at all is no bar.
    assert draw_bar(GainBar(0.001, None, None, None), 12, PLAIN) == "|#.........|"
    assert draw_bar(None, 12, UNICODE) == "┊╌╌╌╌╌╌╌╌╌╌│"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(small: Audit, width: int) -> None:
    for audit in (small, with_first_arm(small, "漢字" * 20)):
        lines = printed(audit, width).splitlines()
        assert max(map(cell_len, lines)) <= width
        assert lines[0] == "The server, about each client: label shares"[:width]


def test_an_ascii_terminal_without_colours_has_all_words_and_numbers(small: Audit) -> None:
    text = printed(small, 80, "ascii")
    leak, hidden = text.splitlines()[1:3]
    assert leak.startswith("  none   Leaks, size unsure")
    assert leak.endswith("| 85 %")
    assert "No leak above the margin" in hidden
    assert "|===" in leak
    assert "\x1b" not in text
    assert "\x1b[" in printed(small, 80, colours=True)


def test_names_cannot_control_the_terminal(small: Audit) -> None:
    assert "\x1b" not in printed(with_first_arm(small, "\x1b[2J"), 80)


def test_the_first_lines_are_those_of_the_page(small: Audit) -> None:
    fault = RunCriticism(
        "noise-repeats",
        "critical",
        "noise repeats",
        "noise",
        "Two rounds have equal noise.",
        "",
        "Draw new noise.",
        "",
    )
    runs = tuple(replace(one, criticisms=(fault,)) for one in small.arms[:1])
    lines = first_lines(replace(small, arms=(*runs, *small.arms[1:])))
    assert lines[0].startswith("Critical: Arm “none”: noise repeats.")
    page = render_page(replace(small, arms=(*runs, *small.arms[1:])))
    told = [line.removeprefix("Critical: ").replace("'", "&#39;") for line in lines]
    places = [page.index(line) for line in told]
    assert places == sorted(places)


def test_a_promise_that_does_not_hold_is_the_first_line_of_terminal_and_page() -> None:
    # The run adds a noise multiplier of 1 and states 10; canaries show it.
    weak = replace(LOCAL, noise_multiplier=10.0)
    audit = with_verdicts(audit_of(weak, noisy_finding(1.0), are_canaries=True))
    first = first_lines(audit)[0].removeprefix("Does not hold: ")
    assert first.startswith("The promise of differential privacy by LocalDp does not hold")
    page = render_page(audit)
    answers = page[page.index('<ul class="plain answers">') :].replace("&#39;", "'")
    start = '<ul class="plain answers">\n<li><span class="badge leaks">Does not hold</span> '
    assert answers.startswith(f"{start}<bdi>{first}</bdi>")
    file = io.StringIO()
    summary = AuditSummary(first_lines(audit), audit.arm_results, ())
    print_summary(summary, Path("out"), Console(file=file, width=200, highlight=False))
    assert file.getvalue().startswith("Does not hold: The promise of differential privacy")


def test_the_json_has_first_lines_verdicts_and_what_attacks_learn(small: Audit) -> None:
    summary = AuditSummary(first_lines(small), small.arm_results, ())
    told = json.loads(summary_json(summary, Path("out")))
    assert told["first"] == list(first_lines(small))
    leak, hidden = told["results"]
    assert (leak["arm"], leak["verdict"]) == ("none", "leaks")
    assert leak["learns"] == pytest.approx(0.85)
    assert leak["interval"][0] < leak["learns"] <= leak["interval"][1]
    assert hidden["verdict"] == "no leak above margin"
    assert told["findings"] == "out/findings.json"


def test_the_summary_ends_with_the_report_and_the_next_command(small: Audit) -> None:
    file = io.StringIO()
    summary = AuditSummary(("first “line”",), small.arm_results, ("further",))
    print_summary(summary, Path("out"), Console(file=file, width=80, highlight=False))
    said = file.getvalue().splitlines()
    assert said[0].startswith("first")
    assert said[1].startswith("The server, about each client")
    assert said[-3:] == [
        "further",
        "The report: out/report.html",
        "Evidence for a data-protection file: overheard evidence out",
    ]
