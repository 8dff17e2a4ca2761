"""The kinds of parts that plans name, and the questions that attacks answer."""

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


def _fits_a_plan(part: type) -> None:
    """Refuse a part whose settings a plan, or the schema of plans, cannot hold."""
    settings_model(str(getattr(part, "name")), part).model_json_schema()  # noqa: B009


def _answers_by_its_name(part: type[Question[Any]]) -> None:
    """Refuse a question whose findings would stand under another name."""
    if part.name != part().scorer.name:
        raise TypeError(
            f"the question {part.name!r} has a scorer named {part().scorer.name!r}: both take "
            "the same name"
        )


def _is_made_of_nothing(part: type[Scorer[Any]]) -> None:
    """Refuse a scorer that has settings: nobody could give them."""
    part()


# Any: an attack answers, and a question asks, what its own claim says.
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
"""All of them, in the order of the alphabet."""


@cache
def questions() -> Mapping[str, Question[Any]]:
    """Return every question by name.

    A scorer whose claims no question takes is a question by itself: see `plain_question`.
    """
    asked = {name: question() for name, question in QUESTIONS.parts().items()}
    claims = {question.scorer.claim for question in asked.values()}
    alone = [one() for one in SCORERS.parts().values() if one.claim not in claims]
    plain = {scorer.name: plain_question(scorer) for scorer in alone}
    return MappingProxyType(dict(sorted((plain | asked).items())))


def measure_of(row: Row) -> Measure:
    """How the figure of a row is told to a reader."""
    return measure(row.question, row.score)


def measure(question: str, score: str) -> Measure:
    """How a score of a question is told; one that it does not list, on its own scale.

    Raises:
        KeyError: if the question is not known here.

    """
    return questions()[question].measure(score)


def question_of(attack: Attack[Any]) -> Question[Any]:
    """Return the question that an attack answers.

    Raises:
        PlanError: if there is none that takes its claims.

    """
    return question_of_claims(attack.answers, attack.name)


def question_of_claims(claim: type[Claim], who: str) -> Question[Any]:
    """Return the question that claims of this class answer.

    Args:
        claim: the class.
        who: who makes such claims, for the error.

    Raises:
        PlanError: if there is none that takes such claims.

    """
    for question in questions().values():
        if question.scorer.claim is claim:
            return question
    raise PlanError(
        f"{who} claims {claim.__name__}, and no question takes such claims: install the "
        "package that has the question"
    )
