"""The trade-off figures: leakage against accuracy and bytes sent."""

import re
from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.core.scorer import Score
from overheard.drawing.figures import ReportFigure
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, ClaimRow, Finding
from overheard.findings.traffic import Traffic
from overheard.report import frontier_figures
from tests.report.user_audits import identity_findings, user_audit
from tests.runs.audits import HOSTILE

ACCURACIES = {"none": 0.8, "cheap": 0.78, "dear": 0.6, "useless": 0.5}


def findings(**strengths: float) -> list[Finding]:
    return [
        one
        for arm, strength in strengths.items()
        for one in identity_findings(arm, "ours", strength)
    ]


def report_figures(
    held: list[Finding], accuracies: dict[str, float] = ACCURACIES
) -> tuple[ReportFigure, ...]:
    return frontier_figures.frontier_figures(
        with_verdicts(user_audit(held, accuracies)).arm_results
    )


def best(report_figure: ReportFigure) -> dict[str, str]:
    return {line[0]: line[-1] for line in report_figure.table.rows if line[-1]}


def test_a_frontier_needs_an_undefended_arm_and_another_one() -> None:
    assert report_figures(findings(none=3.0)) == ()
    assert report_figures(findings(cheap=3.0, dear=1.0)) == ()
    audit = user_audit(findings(none=3.0, cheap=1.0), ACCURACIES)
    blank = replace(audit, arms=tuple(replace(run, accuracy={}) for run in audit.arms))
    assert frontier_figures.frontier_figures(with_verdicts(blank).arm_results) == ()


def test_names_of_arms_are_escaped() -> None:
    held = [
        *findings(none=3.0),
        *identity_findings(f"{HOSTILE}\x1b", "ours", 1.0),
    ]
    (report_figure,) = report_figures(held, {"none": 0.8, f"{HOSTILE}\x1b": 0.7})
    assert "<script" not in report_figure.panels[0].drawing
    assert "\x1b" not in report_figure.note


def dots(drawing: str, colour: int) -> list[tuple[float, float]]:
    """The points of one colour, in pixels from the upper left corner of the drawing."""
    place = r'<use href="[^"]*" x="([\d.]+)" y="([\d.]+)"'
    found = re.findall(rf"{place} fill=\"var\(--series-{colour}\)\"", drawing)
    return [(float(x), float(y)) for x, y in found]


def sending(audit: Audit, **sent: int) -> Audit:
    """The same, with so many bytes sent up in each arm."""
    runs = tuple(replace(run, traffic=Traffic(sent[run.arm], 0, 1, 1)) for run in audit.arms)
    return replace(audit, arms=runs)


def test_a_defense_that_raises_the_error_lies_to_the_right(small: Audit) -> None:
    # Error without defenses: 6 %; with noise 40 %, the error of guessing.
    (report_figure,) = frontier_figures.frontier_figures(small.arm_results)
    (panel,) = report_figure.panels
    (noise, low), (none, high) = dots(panel.drawing, 1)
    assert none < noise
    assert "further right means less leakage" in report_figure.note
    assert low > high  # it keeps less accuracy, and stands further down
    assert best(report_figure) == {"none": "yes", "noise": "yes"}


def test_a_second_panel_shows_fewer_bytes_further_down(small: Audit) -> None:
    audit = sending(small, none=4 * 2**20, noise=2**20)
    (report_figure,) = frontier_figures.frontier_figures(with_verdicts(audit).arm_results)
    assert [panel.heading for panel in report_figure.panels] == [
        "Accuracy retained",
        "Bytes sent",
    ]
    drawing = report_figure.panels[1].drawing
    (noise, few), (none, many) = dots(drawing, 2)
    assert none < noise
    assert many < few  # in pixels from above
    assert "sent in a run, MiB" in drawing
    place = report_figure.table.headers.index("Sent in a run")
    sizes = [line[place].replace("\u00a0", " ") for line in report_figure.table.rows]
    assert sizes == ["4.0 MiB", "1.0 MiB"]


def test_equal_or_unknown_bytes_give_no_second_panel(
    small: Audit,
) -> None:
    for audit in (small, sending(small, none=2**20, noise=2**20)):
        (report_figure,) = frontier_figures.frontier_figures(with_verdicts(audit).arm_results)
        assert len(report_figure.panels) == 1


def test_membership_is_compared_with_a_coin() -> None:
    cell = Cell("none", 0, (SERVER,), "lira", "Lira()", "membership", (0, 1))
    row = ClaimRow((1.0, -1.0))
    held = [
        Finding(replace(cell, arm=arm), (client(0),), row, row,
                (Score("membership_auc", value, "higher", {"a coin": 0.5}, {}),))
        for arm, value in (("none", 0.9), ("dear", 0.52))
    ]  # fmt: skip
    (report_figure,) = report_figures(held)
    (dear, _), (none, _) = dots(report_figure.panels[0].drawing, 1)
    assert dear < none
    (first, _) = report_figure.table.rows
    assert first[report_figure.table.headers.index("Uninformed guess")].startswith("50")
    assert "guessing" in report_figure.legend
