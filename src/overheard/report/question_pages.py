"""Discovery of the report pages of each question."""

from overheard.core.plugin_registry import PluginRegistry
from overheard.drawing.pages import Pages, PlainPages
from overheard.plans.registries import questions

PAGES = PluginRegistry[Pages]("pages", Pages, "overheard.questions", "pages.report")
"""The pages of all questions that define their own."""


def pages_of(question: str) -> Pages:
    """Return a question's report pages; by default, tables of its scores.

    Raises:
        KeyError: if the question is unknown.

    """
    return PAGES.plugins().get(question, PlainPages)(questions()[question])
