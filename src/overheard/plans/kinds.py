"""The kinds of parts that plans name, and the questions that attacks answer."""

from collections.abc import Mapping
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
from overheard.findings.question import Question
from overheard.findings.row import Row
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.model import Model

# Any: an attack answers, and a question asks, what its own claim says.
ATTACKS = Kind[Attack[Any]]("attacks", Attack, "overheard.questions", "attacks")
DATASETS = Kind[DataSource]("datasets", DataSource, "overheard.data.datasets")
DEFENSES = Kind[Defense]("defenses", Defense, "overheard.defenses")
DISTILLATIONS = Kind[Distillation](
    "distillations", Distillation, "overheard.learning.distillation.methods"
)
MODELS = Kind[Model]("models", Model, "overheard.learning.models")
QUESTIONS = Kind[Question[Any]]("questions", Question, "overheard.questions", "question")
SCORERS = Kind[Scorer[Any]]("scorers", Scorer, "overheard.questions", "scorer")
SPLITS = Kind[Split]("splits", Split, "overheard.data.splits")

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


def questions() -> Mapping[str, Question[Any]]:
    """Return every question by name."""
    return {name: question() for name, question in QUESTIONS.parts().items()}


def measure_of(row: Row) -> Measure:
    """How the figure of a row is told to a reader."""
    return measure(row.question, row.score)


def measure(question: str, score: str) -> Measure:
    """How a score of a question is told; one that it does not list, on its own scale.

    Raises:
        KeyError: if the question is not known here.

    """
    return QUESTIONS.parts()[question]().measure(score)


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
