"""The registries of plugins that plans name, and the questions that attacks answer."""

from collections.abc import Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any, get_args

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.attack import Attack
from overheard.core.claims import Claim
from overheard.core.defense import HOOKS, Defense
from overheard.core.errors import PlanError
from overheard.core.mechanism import Site
from overheard.core.plugin_registry import PluginRegistry
from overheard.core.scorer import Scorer
from overheard.core.split import Split
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.core.truth import TrueFact
from overheard.data.dataset import DataSource
from overheard.findings.number_format import Measure
from overheard.findings.question import Question, default_question, unknown_question
from overheard.findings.score_row import ScoreRow
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.model import Model
from overheard.plans.plugin_field import settings_model


def _check_settings(plugin: type) -> None:
    """Check that a plan and its JSON schema can represent the settings of a plugin."""
    settings_model(str(getattr(plugin, "name")), plugin).model_json_schema()  # noqa: B009


def _check_defense(plugin: type[Defense]) -> None:
    """Check that a defense states where it is enforced, and that it does something."""
    _check_settings(plugin)
    for name in ("enforced_at", "switched_off_by"):
        if not isinstance(getattr(plugin, name, None), str):
            raise TypeError(f"{plugin.__name__} has no {name}: see the class Defense")
    if plugin.enforced_at not in get_args(Site):
        raise TypeError(
            f"{plugin.__name__}.enforced_at is {plugin.enforced_at!r}: choose one of "
            f"{', '.join(get_args(Site))}"
        )
    if not (plugin.masks_updates or any(map(partial(_is_overridden, plugin), HOOKS))):
        raise TypeError(f"{plugin.__name__} does nothing: override one of {', '.join(HOOKS)}")


def _is_overridden(plugin: type[Defense], hook: str) -> bool:
    return getattr(plugin, hook) is not getattr(Defense, hook)


def _check_question_name(plugin: type[Question[Any]]) -> None:
    """Check that a question and its scorer have the same name, which findings use."""
    if plugin.name != plugin().scorer.name:
        raise TypeError(
            f"the question {plugin.name!r} has a scorer named {plugin().scorer.name!r}: give "
            "both the same name"
        )


def _check_no_settings(plugin: type[Scorer[Any]]) -> None:
    """Check that a scorer has no required settings, as a plan cannot give any."""
    plugin()


ALGORITHMS = PluginRegistry[Algorithm](
    "algorithms", Algorithm, "overheard.algorithms", check=_check_settings
)
# Any: each attack and each question has its own class of claims.
ATTACKS = PluginRegistry[Attack[Any]](
    "attacks", Attack, "overheard.questions", "attacks", check=_check_settings
)
DATASETS = PluginRegistry[DataSource](
    "datasets", DataSource, "overheard.data.datasets", check=_check_settings
)
DEFENSES = PluginRegistry[Defense](
    "defenses", Defense, "overheard.defenses", check=_check_defense
)
DISTILLATIONS = PluginRegistry[Distillation](
    "distillations",
    Distillation,
    "overheard.learning.distillation.methods",
    check=_check_settings,
)
MODELS = PluginRegistry[Model](
    "models", Model, "overheard.learning.models", check=_check_settings
)
QUESTIONS = PluginRegistry[Question[Any]](
    "questions", Question, "overheard.questions", "question", check=_check_question_name
)
SCORERS = PluginRegistry[Scorer[Any]](
    "scorers", Scorer, "overheard.questions", "scorer", check=_check_no_settings
)
SPLITS = PluginRegistry[Split]("splits", Split, "overheard.data.splits", check=_check_settings)

REGISTRIES: tuple[PluginRegistry[Any], ...] = (
    ALGORITHMS,
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

    A scorer without a question gets a default one: see `default_question`.
    """
    defined = {name: question() for name, question in QUESTIONS.plugins().items()}
    claims = {question.scorer.claim_type for question in defined.values()}
    scorers = [one() for one in SCORERS.plugins().values() if one.claim_type not in claims]
    plain = {scorer.name: default_question(scorer) for scorer in scorers}
    return MappingProxyType(dict(sorted((plain | defined).items())))


def question_of_findings(name: str) -> Question[Any]:
    """Return the question that findings name, which need not be installed."""
    return questions().get(name) or unknown_question(name)


@cache
def true_fact_kinds() -> tuple[type[TrueFact], ...]:
    """Return the kinds of facts that truth.json may state: what questions read, and canaries.

    Raises:
        PlanError: if two kinds have the same key.

    """
    of_questions = [kind for one in questions().values() for kind in one.reads]
    kinds: tuple[type[TrueFact], ...] = tuple(dict.fromkeys([*of_questions, CanaryDirections]))
    by_key = dict[str, type[TrueFact]]()
    for kind in kinds:
        other = by_key.setdefault(kind.key, kind)
        if other is not kind:
            raise PlanError(
                f"{other.__module__} and {kind.__module__} have facts with the key "
                f"{kind.key!r}: uninstall the package of one of them"
            )
    return kinds


def row_measure(row: ScoreRow) -> Measure:
    """Return how to display the score of a row."""
    return score_measure(row.question, row.score)


def score_measure(question: str, score: str) -> Measure:
    """Return how to display a score of a question; by default on its own scale."""
    return question_of_findings(question).measure(score)


def question_of_attack(attack: Attack[Any]) -> Question[Any]:
    """Return the question that an attack answers.

    Raises:
        PlanError: if there is no question for its claims.

    """
    return question_of_claim_type(attack.claim_type, attack.name)


def question_of_claim_type(claim_type: type[Claim], claimant: str) -> Question[Any]:
    """Return the question that claims of this class answer.

    Args:
        claim_type: the class of claims.
        claimant: what makes such claims, for the error message.

    Raises:
        PlanError: if there is no question for such claims.

    """
    for question in questions().values():
        if question.scorer.claim_type is claim_type:
            return question
    raise PlanError(
        f"{claimant} makes claims of {claim_type.__name__}, for which there is no question: "
        "install the package that has the question"
    )
