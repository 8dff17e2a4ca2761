"""Discovery of the report pages of each question."""

from overheard.core.plugin_registry import PluginRegistry
from overheard.drawing.question_pages import DefaultQuestionPages, QuestionPages
from overheard.plans.registries import question_of_findings

PAGES = PluginRegistry[QuestionPages](
    "pages", QuestionPages, "overheard.questions", "pages.report"
)
"""The pages of all questions that define their own."""


def pages_of(question: str) -> QuestionPages:
    """Return a question's report pages; by default, tables of its scores."""
    pages = PAGES.plugins().get(question, DefaultQuestionPages)
    return pages(question_of_findings(question))
