"""What every attack must keep to."""

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
    """Hold an attack to the contract of attacks.

    It is tried on planted runs, which answer its question or do not. For a question of your own
    give runs of your own; without them it is tried on a run of four clients, each with one
    label above all, and nobody sees whether it is any good.

    Args:
        attack: with its settings.
        scorer: that of the question which takes its claims, if left out.
        leaky: a run that leaks the answer.
        silent: a run that does not.

    Raises:
        AssertionError: saying what it does not keep to.

    """
    keeps_apart_from_the_truth(attack)
    trial = trial_of(attack, scorer, leaky, silent)
    for check in attack_checks(attack.answers):
        check(trial)


def attack_checks(claim: type[Claim]) -> tuple[AttackCheck, ...]:
    """Return what an attack with such claims is held to, but for what it imports."""
    return (*general_checks(), *gain_checks(claim))


def general_checks() -> tuple[AttackCheck, ...]:
    """Return what every attack is held to, however good its claims are."""
    return (*_EVERY, *adapting.CHECKS)


def gain_checks(claim: type[Claim]) -> tuple[AttackCheck, ...]:
    """Return what the claims of an attack are held to."""
    return _BY_CLAIM.get(claim, (gains.finds_the_leak, gains.finds_nothing_in_silence))


def keeps_apart_from_the_truth(attack: Attack[Any]) -> None:
    """See that its module loads neither the truth nor the whole transcript."""
    module = type(attack).__module__
    loaded = truth_loaded_by(module)
    require(
        not loaded,
        f"{attack.name}: {module} loads {', '.join(loaded)}: an attack must not import what "
        "knows the truth, nor stand in a package that does",
    )


def is_a_value_that_says_its_source(trial: Trial) -> None:
    """See that it is a final frozen dataclass with a name and a source."""
    require_part(trial.attack)
    require(
        len(trial.attack.source) > 10,
        f"{trial.attack.name}: `source` must name authors, year and section",
    )


def answers_a_question_that_a_scorer_knows(trial: Trial) -> None:
    """See that somebody can hold its claims against the truth."""
    attack = trial.attack
    require(
        trial.scorer is not None and trial.scorer.claim is attack.answers,
        f"{attack.name} claims {attack.answers.__name__}, and no scorer takes such claims: "
        "give the scorer, or install the package that has it",
    )


def claims_the_same_for_the_same_seed(trial: Trial) -> None:
    """See that it draws by its seed alone, and leaves the view as it was."""
    attack, world = trial.attack, trial.world
    first = claims_of(attack, world)
    again = claim_anew(attack, world.transcript.seen_by(SERVER), world.targets, world.knowledge)
    require(
        first.keys() == set(world.targets),
        f"{attack.name} claims something of {sorted(first)}, asked about {world.targets}",
    )
    require(
        all(told(first[who]) == told(again[who]) for who in first),
        f"{attack.name}: the same seed gives other claims: draw from the seed alone",
    )


def claims_the_same_of_a_target_whoever_else_is_asked_about(trial: Trial) -> None:
    """See that a claim does not depend on the other targets."""
    attack, world = trial.attack, trial.world
    together, who = claims_of(attack, world), world.targets[2]
    view = world.transcript.seen_by(SERVER)
    alone = claim_anew(attack, view, (who,), world.knowledge)
    gaps = [
        abs(one - other)
        # Relative as well: a statistic may be large.
        for one, other in zip(told(alone[who]), told(together[who]), strict=True)
        if one != other and not abs(one - other) <= max(1e-4, 1e-6 * abs(other))
    ]
    require(not gaps, f"{attack.name}: asked about {who} alone it claims something else")
    require(
        alone[who].candidates() == together[who].candidates(),
        f"{attack.name}: asked about {who} alone it chooses among others",
    )


def is_refused_with_the_name_of_each_missing_need(trial: Trial) -> None:
    """See that where all is missing, a refusal says what."""
    attack, deaf = trial.attack, View(frozenset({client(9)}), ())
    try:
        check_needs(attack, deaf, trial.world.targets[0], Knowledge(4))
    except NeedsError as refusal:
        said = str(refusal)
    else:
        raise AssertionError(f"{attack.name} runs where nothing is heard: say what it `needs`")
    # What was not heard at all is told as missing updates; broadcasts go without saying, and a
    # loss of which nothing is known may be the one. Needs of others have checks of their own.
    expected = attack.needs & set(NEEDS) - {BROADCASTS, CROSS_ENTROPY}
    silent = [need.words for need in expected if need.words not in said]
    require(attack.name in said, f"{attack.name}: the refusal does not name it: {said}")
    require(not silent, f"{attack.name}: the refusal does not name {silent}: {said}")


def is_not_refused_where_all_is_there(trial: Trial) -> None:
    """See that its needs can be met."""
    world = trial.world
    view = world.transcript.seen_by(SERVER)
    try:
        check_needs(trial.attack, view, world.targets[0], world.knowledge)
    except NeedsError as refusal:
        raise AssertionError(f"refused where it should run: {refusal}") from refusal


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
