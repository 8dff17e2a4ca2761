import re

from markupsafe import Markup

from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard_studies.pages.experiment_page import ExperimentPage, PaperStatement

HOSTILE = "<script>alert(1)</script>\u202e"

NUMBERS = ReportTable("All", ("Figure", "Ours"), ((HOSTILE.rstrip("\u202e"), "0.5"),), 1)


def page(
    readings: tuple[PaperStatement, ...] = (),
    report_figures: tuple[ReportFigure, ...] = (),
    audits: tuple[str, ...] = (),
    *,
    quick: bool = False,
) -> str:
    return ExperimentPage(
        HOSTILE, HOSTILE, HOSTILE, readings, report_figures, (NUMBERS,), audits, quick
    ).html()


def test_every_name_is_text_with_its_control_characters_spelled_out() -> None:
    html = page((PaperStatement("key", HOSTILE, "no", HOSTILE),), audits=(HOSTILE,))
    assert html.count("<script") == 1
    assert "<script>alert" not in html
    assert "\u202e" not in html
    # Name; title, and as the page's; differences; the table; a sentence and its reason; a link.
    assert html.count("&lt;script&gt;alert(1)") == 8


def test_a_statement_of_the_paper_has_measured_evidence() -> None:
    html = page((PaperStatement("key", "It shows.", "undecided", "by 3", "above 4"),))
    row = re.search(r"<tr><th[^>]*><bdi>It shows\.</bdi>.*?</tr>", html)
    assert row
    assert re.findall(r"<bdi>([^<]+)</bdi>", row[0]) == [
        "It shows.",
        "undecided",
        "by 3",
        "above 4",
    ]


def test_only_statements_about_audits_are_said_to_need_five_runs() -> None:
    """The runs of a measurement without audits are not counted."""
    statement = (PaperStatement("key", "It shows.", "yes", "by 3", "above 2"),)
    assert "at least five runs" in page(statement, audits=("even_70",))
    assert "at least five runs" not in page(statement)


def test_without_sentences_or_drawings_there_are_no_empty_sections() -> None:
    html = page()
    assert "statements" not in html
    assert "The figures" not in html
    assert "The underlying audits" not in html


def test_figures_have_tables_of_their_values() -> None:
    report_figure = ReportFigure(
        "Figure", "a note", None, (Panel("left", Markup("<svg></svg>")),), NUMBERS, True
    )
    html = page(report_figures=(report_figure,))
    assert "<svg></svg>" in html
    assert html.count("<caption>") == 2


def test_links_to_reports_stay_inside_the_folder() -> None:
    html = page(audits=("even_70", "a b"))
    assert 'href="even_70/report.html"' in html
    assert 'href="a%20b/report.html"' in html


def test_a_reduced_run_says_so() -> None:
    assert "reduced size" in page(quick=True)
    assert "reduced size" not in page()


def test_the_page_fetches_nothing_and_runs_only_its_own_script() -> None:
    html = page()
    assert "default-src 'none'" in html
    assert html.count("<script") == 1
    assert not re.search(r"https?:|@import|url\(", html.replace(HOSTILE, ""))
