"""Scores claims about all targets against the ground truth in one call."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score
from overheard.core.truth import GroundTruth
from overheard.findings.frame import score_columns, typed_frame
from overheard.findings.html import html_table
from overheard.plans.registries import question_of_claim_type

if TYPE_CHECKING:
    import pandas

COLUMNS = (
    "target", "score", "better", "value", "best guess", "gain",
    "uninformed guesses", "informed guesses",
)  # fmt: skip
"""Columns of `ScoredClaims.to_frame`: the score columns of an audit's DataFrame."""

MAX_ROWS = 40
"""Rows shown in a notebook; the number of further rows is stated."""


@final
@dataclass(frozen=True, slots=True)
class ScoredClaims:
    """The scores of claims about some targets.

    Args:
        question: name of the question that the claims answer.
        by_target: the scores of each claim.

    """

    question: str
    by_target: Mapping[Party, tuple[Score, ...]]

    def to_frame(self) -> "pandas.DataFrame":
        """Return a DataFrame with a row for each target and score.

        `value` is the score of the claim, `best guess` that of the best uninformed guess, and
        `gain` how much better the claim is; above 0 = better than the guess.
        """
        return typed_frame(
            [
                {"target": target, **score_columns(one)}
                for target, scores in self.by_target.items()
                for one in scores
            ],
            COLUMNS,
        )

    def _repr_html_(self) -> str:
        rows = [
            (target, one.name, *map(_number, (one.value, one.best_uninformed, one.gain)))
            for target, scores in self.by_target.items()
            for one in scores
        ]
        more = len(rows) - MAX_ROWS
        return html_table(
            self.question.replace("_", " "),
            ("target", "score", "value", "best uninformed guess", "gain"),
            rows[:MAX_ROWS],
            f"{more} more rows are in to_frame()." if more > 0 else "",
        )


def score(
    claims: Mapping[Party, Claim],
    truth: GroundTruth,
    knowledge: Knowledge,
    rounds: Collection[int],
) -> ScoredClaims:
    """Score an attack's claims against the ground truth, and compare with uninformed guesses.

    Args:
        claims: by target, as `Attack.infer` returns them; all of one class, which determines
            the question.
        truth: the ground truth of the run; if clients observe, the ground truth
            without them (`GroundTruth.without_parties`).
        knowledge: the knowledge of the attacker, for the guesses.
        rounds: that the attack observed, such as `view.rounds()`.

    Raises:
        ValueError: if there are no claims, or claims of several classes.
        PlanError: if no question takes such claims.
        NeedsError: if the ground truth does not state what is claimed.

    """
    classes = {type(claim) for claim in claims.values()}
    if len(classes) != 1:
        names = ", ".join(sorted(one.__name__ for one in classes)) or "no claims"
        raise ValueError(f"expected claims of one class, got {names}")
    question = question_of_claim_type(classes.pop(), "the attack")
    scorer = question.scorer
    by_target = dict[Party, tuple[Score, ...]]()
    for target, claim in claims.items():
        true = scorer.true_claim(truth, target, rounds, claim)
        uninformed = scorer.uninformed_guesses(claim, knowledge)
        guesses = Guesses(uninformed, scorer.informed_guesses(true))
        by_target[target] = scorer.score(claim, true, guesses)
    return ScoredClaims(question.name, by_target)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
