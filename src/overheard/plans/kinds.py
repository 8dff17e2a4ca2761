"""The registries of plugins that plans name, and the questions that attacks answer."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from overheard.core.attack import Attack
from overheard.core.claims import Claim
from overheard.core.defense import Defense
from overheard.core.errors import PlanError
from overheard.core.kind import Kind
from overheard.core.scorer import Scorer
from overheard.core.split import Split
from overheard.data.dataset import DataSource
from overheard.findings.figures import Measure
from overheard.findings.question import Question, plain_question
from overheard.findings.row import Row
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.model import Model
from overheard.plans.part import settings_model


def _fits_a_plan(plugin: type) -> None:
    """Check that a plan and its JSON schema can represent the settings of a plugin."""
    settings_model(str(getattr(plugin, "name")), plugin).model_json_schema()  # noqa: B009


def _answers_by_its_name(plugin: type[Question[Any]]) -> None:
    """Check that a question and its scorer have the same name, which findings use."""
    if plugin.name != plugin().scorer.name:
        raise TypeError(
            f"the question {plugin.name!r} has a scorer named {plugin().scorer.name!r}: give "
            "both the same name"
        )


def _is_made_of_nothing(plugin: type[Scorer[Any]]) -> None:
    """Check that a scorer has no required settings, as a plan cannot give any."""
    plugin()


# Any: each attack and each question has its own class of claims.
ATTACKS = Kind[Attack[Any]](
    "attacks", Attack, "overheard.questions", "attacks", check=_fits_a_plan
)
DATASETS = Kind[DataSource](
    "datasets", DataSource, "overheard.data.datasets", check=_fits_a_plan
)
DEFENSES = Kind[Defense]("defenses", Defense, "overheard.defenses", check=_fits_a_plan)
DISTILLATIONS = Kind[Distillation](
    "distillations",
    Distillation,
    "overheard.learning.distillation.methods",
    check=_fits_a_plan,
)
MODELS = Kind[Model]("models", Model, "overheard.learning.models", check=_fits_a_plan)
QUESTIONS = Kind[Question[Any]](
    "questions", Question, "overheard.questions", "question", check=_answers_by_its_name
)
SCORERS = Kind[Scorer[Any]](
    "scorers", Scorer, "overheard.questions", "scorer", check=_is_made_of_nothing
)
SPLITS = Kind[Split]("splits", Split, "overheard.data.splits", check=_fits_a_plan)

KINDS: tuple[Kind[Any], ...] = (
    ATTACKS,
    DATASETS,
    DEFENSES,
    DISTILLATIONS,
    MODELS,
    QUESTIONS,
    SCORERS,
    SPLITS,
)
"""All registries, in alphabetical order."""


@cache
def questions() -> Mapping[str, Question[Any]]:
    """Return every question by name.

    A scorer without a question gets a default one: see `plain_question`.
    """
    defined = {name: question() for name, question in QUESTIONS.parts().items()}
    claims = {question.scorer.claim for question in defined.values()}
    scorers = [one() for one in SCORERS.parts().values() if one.claim not in claims]
    plain = {scorer.name: plain_question(scorer) for scorer in scorers}
    return MappingProxyType(dict(sorted((plain | defined).items())))


def measure_of(row: Row) -> Measure:
    """Return how to display the score of a row."""
    return measure(row.question, row.score)


def measure(question: str, score: str) -> Measure:
    """Return how to display a score of a question; by default on its own scale.

    Raises:
        KeyError: if the question is unknown.

    """
    return questions()[question].measure(score)


def question_of(attack: Attack[Any]) -> Question[Any]:
    """Return the question that an attack answers.

    Raises:
        PlanError: if there is no question for its claims.

    """
    return question_of_claims(attack.answers, attack.name)


def question_of_claims(claim: type[Claim], who: str) -> Question[Any]:
    """Return the question that claims of this class answer.

    Args:
        claim: the class of claims.
        who: what makes such claims, for the error message.

    Raises:
        PlanError: if there is no question for such claims.

    """
    for question in questions().values():
        if question.scorer.claim is claim:
            return question
    raise PlanError(
        f"{who} makes claims of {claim.__name__}, for which there is no question: install the "
        "package that has the question"
    )
