"""Contract tests for attacks."""

from collections.abc import Callable
from typing import Any

from overheard.core.attack import Attack, check_needs
from overheard.core.claims import Claim
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import BROADCASTS, CROSS_ENTROPY, NEEDS
from overheard.core.parties import SERVER, client
from overheard.core.scorer import Scorer
from overheard.core.view import View
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.testing import adapting, gains
from overheard.testing.require import require, require_part
from overheard.testing.trial import Trial, claim_anew, claims_of, told, trial_of
from overheard.testing.truth_apart import truth_loaded_by
from overheard.testing.worlds.world import World

AttackCheck = Callable[[Trial], None]


def check_attack(
    attack: Attack[Any],
    *,
    scorer: Scorer[Any] | None = None,
    leaky: World | None = None,
    silent: World | None = None,
) -> None:
    """Check that an attack satisfies the contract of attacks.

    It is tried on planted runs that leak the answer to its question, and on runs that do not.
    For your own question pass your own runs. Without them the attack is tried on a run of four
    clients with skewed labels, and its accuracy is not checked.

    Args:
        attack: the attack, with its settings.
        scorer: scorer of its claims; by default that of the installed question.
        leaky: a run that leaks the answer.
        silent: a run that does not leak it.

    Raises:
        AssertionError: naming the violated rule.

    """
    keeps_apart_from_the_truth(attack)
    trial = trial_of(attack, scorer, leaky, silent)
    for check in attack_checks(attack.claim_type):
        check(trial)


def attack_checks(claim: type[Claim]) -> tuple[AttackCheck, ...]:
    """Return all checks for an attack with such claims, except that of its imports."""
    return (*general_checks(), *gain_checks(claim))


def general_checks() -> tuple[AttackCheck, ...]:
    """Return the checks for every attack, which do not depend on its accuracy."""
    return (*_EVERY, *adapting.CHECKS)


def gain_checks(claim: type[Claim]) -> tuple[AttackCheck, ...]:
    """Return the checks of an attack's claims."""
    return _BY_CLAIM.get(claim, (gains.finds_the_leak, gains.finds_nothing_in_silence))


def keeps_apart_from_the_truth(attack: Attack[Any]) -> None:
    """Check that its module loads neither the ground truth nor the whole transcript."""
    module = type(attack).__module__
    loaded = truth_loaded_by(module)
    require(
        not loaded,
        f"{attack.name}: {module} loads {', '.join(loaded)}: neither the module of an attack "
        "nor its package may import the ground truth",
    )


def is_a_value_that_says_its_source(trial: Trial) -> None:
    """Check that it is a final frozen dataclass with a name and a source."""
    require_part(trial.attack)
    require(
        len(trial.attack.source) > 10,
        f"{trial.attack.name}: `source` must name authors, year and section",
    )


def answers_a_question_that_a_scorer_knows(trial: Trial) -> None:
    """Check that there is a scorer for its claims."""
    attack = trial.attack
    require(
        trial.scorer is not None and trial.scorer.claim_type is attack.claim_type,
        f"{attack.name} claims {attack.claim_type.__name__}, but no scorer takes such claims: "
        "pass the scorer, or install the package that has it",
    )


def claims_the_same_for_the_same_seed(trial: Trial) -> None:
    """Check that claims depend on the seed alone, and that the view is not changed."""
    attack, run = trial.attack, trial.world
    first = claims_of(attack, run)
    again = claim_anew(attack, run.transcript.seen_by(SERVER), run.targets, run.knowledge)
    require(
        first.keys() == set(run.targets),
        f"{attack.name} returns claims about {sorted(first)} for the targets {run.targets}",
    )
    require(
        all(told(first[target]) == told(again[target]) for target in first),
        f"{attack.name}: the same seed gives different claims: draw from the seed alone",
    )


def claims_the_same_of_a_target_whoever_else_is_asked_about(trial: Trial) -> None:
    """Check that a claim does not depend on the other targets."""
    attack, run = trial.attack, trial.world
    together, target = claims_of(attack, run), run.targets[2]
    view = run.transcript.seen_by(SERVER)
    alone = claim_anew(attack, view, (target,), run.knowledge)
    gaps = [
        abs(one - other)
        # Also relative, as a statistic may be large.
        for one, other in zip(told(alone[target]), told(together[target]), strict=True)
        if one != other and not abs(one - other) <= max(1e-4, 1e-6 * abs(other))
    ]
    require(
        not gaps, f"{attack.name}: its claim about {target} changes if it is the only target"
    )
    require(
        alone[target].candidates() == together[target].candidates(),
        f"{attack.name}: its candidates for {target} change if it is the only target",
    )


def is_refused_with_the_name_of_each_missing_need(trial: Trial) -> None:
    """Check that with an empty view the refusal lists all missing needs."""
    attack, empty_view = trial.attack, View(frozenset({client(9)}), ())
    try:
        check_needs(attack, empty_view, trial.world.targets[0], Knowledge(4))
    except NeedsError as refusal:
        message = str(refusal)
    else:
        raise AssertionError(f"{attack.name} runs on an empty view: declare what it `needs`")
    # Without any update, broadcasts are not reported as missing. An unknown loss may be the
    # cross-entropy. Needs of other packages have their own checks.
    expected = attack.needs & set(NEEDS) - {BROADCASTS, CROSS_ENTROPY}
    missing = [need.description for need in expected if need.description not in message]
    require(attack.name in message, f"{attack.name}: the refusal does not name it: {message}")
    require(not missing, f"{attack.name}: the refusal does not name {missing}: {message}")


def is_not_refused_where_all_is_there(trial: Trial) -> None:
    """Check that its needs can be met."""
    run = trial.world
    view = run.transcript.seen_by(SERVER)
    try:
        check_needs(trial.attack, view, run.targets[0], run.knowledge)
    except NeedsError as refusal:
        raise AssertionError(f"refused although all needs are met: {refusal}") from refusal


_EVERY: tuple[AttackCheck, ...] = (
    is_a_value_that_says_its_source,
    answers_a_question_that_a_scorer_knows,
    claims_the_same_for_the_same_seed,
    claims_the_same_of_a_target_whoever_else_is_asked_about,
    is_refused_with_the_name_of_each_missing_need,
    is_not_refused_where_all_is_there,
)

_OF_PEOPLE: tuple[AttackCheck, ...] = (
    gains.names_people,
    gains.names_nobody_where_all_are_alike,
)

_BY_CLAIM: dict[type[Claim], tuple[AttackCheck, ...]] = {
    LabelShares: (
        gains.finds_planted_shares,
        gains.finds_no_shares_where_nothing_leaks,
        gains.relabels_its_shares_with_the_classes,
    ),
    Shift: (
        gains.finds_most_of_the_planted_shifts,
        gains.finds_no_shift_where_nothing_changes,
        gains.tells_of_rounds_that_were_heard,
        gains.moves_no_evidence_with_the_numbers_of_classes,
    ),
    Membership: (
        gains.finds_records_learned_by_heart,
        gains.finds_no_records_that_nobody_saw,
        gains.speaks_of_every_record,
    ),
    Identity: (*_OF_PEOPLE, gains.ranks_all_whom_it_may_name),
    SameSender: (*_OF_PEOPLE, gains.compares_with_others_of_the_crowd),
    Attribute: (*_OF_PEOPLE, gains.tells_an_attribute_by_its_values),
}
