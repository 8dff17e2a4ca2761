"""The defenses of Figure 14, and what the paper says of the attack under them."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from overheard.core.defense import Defense
from overheard.defenses.dp_sgd import DpSgd
from overheard.defenses.dropout import Dropout
from overheard.defenses.local_dp import LocalDp
from overheard.plans.plan import UNDEFENDED, ArmPlan
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard_studies.conclusion import Conclusion, Statistics
from overheard_studies.decaf.conclusions import (
    ALL_CLASSES,
    NULL_CLASSES,
    ByRun,
    difference,
    run_means,
)
from overheard_studies.runs import StudyRuns

STEPS = 10
"""Steps of a user in a round, in all arms."""

STEPWISE_DECAF = Decaf()
"""The attack with bases that take as many steps as a user: the paper's take one."""

ATTACK = plugin_label(STEPWISE_DECAF)
"""Name of the attack in the plan."""

DROPOUT = "dropout"

LITTLE_NOISE = (0.1, 0.25)
"""The multipliers whose epsilons the paper calls large."""

NOTABLE = 0.1
"""A change of the mean L1 distance that is notable: a twentieth of its largest value."""

LARGE_LOSS = 0.2
"""A loss of accuracy between those of Table XI at the multipliers 1 (0.117) and 16 (0.399)."""


def dp_arm(multiplier: float) -> str:
    """Return the name of the arm with DP-SGD at this multiplier."""
    return f"DP-SGD {multiplier:g}"


def defended_arms(multipliers: Sequence[float], clip: float) -> tuple[ArmPlan, ...]:
    """Return the arms: no defense, dropout, DP-SGD by multiplier, and local DP beside them.

    Args:
        multipliers: multipliers of the noise of DP-SGD.
        clip: L2 norm to which gradients of examples, and updates of local DP, are clipped.

    """

    def arm(name: str, *defenses: Defense) -> ArmPlan:
        return ArmPlan(name=name, defenses=defenses)

    return (
        arm(UNDEFENDED),
        *(arm(dp_arm(one), DpSgd(clip, one, batches=STEPS)) for one in multipliers),
        arm(DROPOUT, Dropout()),
        arm("local DP 1", LocalDp(clip, 1.0)),
    )


def defense_conclusions(audit: str, multipliers: Sequence[float]) -> tuple[Conclusion, ...]:
    """Return what the paper says of Figure 14, over all rounds.

    Args:
        audit: the sub-folder of the audit.
        multipliers: multipliers of the noise of DP-SGD.

    """

    def l1(users: Collection[int] | None, arm: str, runs: StudyRuns) -> ByRun:
        rounds = range(runs.plans[audit].training.rounds)
        return run_means(runs.audits[audit], ATTACK, rounds, "l1", users, arm)

    def accuracy(arm: str, runs: StudyRuns) -> ByRun:
        last = runs.plans[audit].training.rounds - 1
        return {
            one.seed: one.accuracy[last]
            for one in runs.audits[audit].arms
            if one.arm == arm and not one.is_control
        }

    def changes(
        measure: Callable[[str, StudyRuns], ByRun],
        arms: Sequence[str],
        runs: StudyRuns,
        _: object,
    ) -> Statistics:
        """Return the change by each arm, paired by run; None for an arm that was left out."""
        measured = {one.name for one in runs.plans[audit].arms}
        return {
            arm: difference(measure(arm, runs), measure(UNDEFENDED, runs))
            if arm in measured
            else None
            for arm in arms
        }

    arms = [dp_arm(one) for one in multipliers]
    words = "L1 less that without a defense"
    return (
        Conclusion(
            "dropout",
            "the dropout defense does not have obvious effects on Decaf",
            partial(changes, partial(l1, None), [DROPOUT]),
            "below",
            NOTABLE,
            words=words,
        ),
        Conclusion(
            "decreases",
            "differential privacy notably decreases Decaf performance",
            partial(changes, partial(l1, None), arms),
            margin=NOTABLE,
            words=words,
        ),
        Conclusion(
            "even",
            "When [epsilon] is large, Decaf can still predict it accurately if the user's data "
            "is distributed evenly (without null-classes)",
            partial(changes, partial(l1, ALL_CLASSES), [dp_arm(one) for one in LITTLE_NOISE]),
            "below",
            NOTABLE,
            words=f"of users 1 to 4, {words}",
        ),
        Conclusion(
            "uneven",
            "Decaf can not work well if the user's data is distributed unevenly (with "
            "null-classes) whenever the [epsilon] is large or small",
            partial(changes, partial(l1, NULL_CLASSES), arms),
            margin=NOTABLE,
            words=f"of users 5 to 10, {words}",
        ),
        Conclusion(
            "accuracy_kept",
            "Table XI: with a multiplier of 1 the model loses 0.117 of its accuracy",
            partial(changes, accuracy, [dp_arm(1.0)]),
            margin=-LARGE_LOSS,
            words="accuracy less that without a defense",
        ),
        Conclusion(
            "accuracy_lost",
            "Table XI: with a multiplier of 16 the model loses 0.399 of its accuracy",
            partial(changes, accuracy, [dp_arm(16.0)]),
            "below",
            -LARGE_LOSS,
            words="accuracy less that without a defense",
        ),
    )
