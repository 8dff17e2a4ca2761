"""Finds the pages of a question, so that a report knows none by name."""

from overheard.core.kind import Kind
from overheard.drawing.pages import Pages, PlainPages
from overheard.plans.kinds import questions

PAGES = Kind[Pages]("pages", Pages, "overheard.questions", "pages.report")
"""The pages of every question that has some."""


def pages_of(question: str) -> Pages:
    """What a report tells of this question alone; of one without pages, its scores.

    Raises:
        KeyError: if the question is not known here.

    """
    return PAGES.parts().get(question, PlainPages)(questions()[question])
