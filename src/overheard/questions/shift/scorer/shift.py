"""Holds what is claimed of a change in a target's data against what came."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, Timeline
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth
from overheard.learning.simplex import normalised
from overheard.questions.shift.claim import Measured, Shift
from overheard.questions.shift.scorer._alarm import (
    alarm_scores,
    false_alarm_scores,
    is_detected,
)
from overheard.questions.shift.scorer._change import CHANGE, direction


@final
@dataclass(frozen=True, slots=True)
class ShiftScorer(Scorer[Shift]):
    """Whether a shift was noticed, when, and how well its direction was told.

    The headline, `auc`, needs many runs with a shift and their controls: it is no score of one
    claim, and is worked out in `statistics.detection`.

    Of a target whose data shifted, where the claim states when it raises an alarm:

    - `detected`: 1 if the alarm was raised in the first round trained on new data or later,
      and not before. The blind guess is an alarm at random, as likely in a whole run as the
      claim says its false alarms are.
    - `false_alarm_before`: 1 if it was raised before; beside the stated rate.
    - `delay`: rounds from the true one to the alarm, only where detected.

    Where the claim guesses the round:

    - `round_error`: how many rounds off; the blind guess is the middle of the claim's rounds.

    Where it says which labels rose and fell (true change c, claimed change d):

    - `change_l1`: sum |d - c|, 0 to 4; the blind guess is no change.
    - `direction`: 1 if d, summed over the labels that truly rose, is above 0; 0 if below; 0.5
      if it is 0, as it is for one who says that nothing changed.
    - `direction_detected`: the same, only where detected.
    - `signs_right`: which part of the true change has its sign right, sum |c| [sign right] /
      sum |c|; a claimed change of 0 counts half.
    - `coverage`: which part of the labels has its true change inside the claimed interval;
      `width`: the mean width of those. Read together; neither has a blind guess.

    Where it says the shares since the change:

    - `risen_error`: how far off it is on the labels that truly rose, taken together.
    - `risen_coverage`: 1 if that true share lies inside the claimed interval, else 0.

    A shift that leaves all labels' shares alone has no direction, and nothing that rose.

    Of a target whose data did not shift, as in a control, there is `false_alarm` alone: 1 if
    any alarm was raised, beside the stated rate.
    """

    name: ClassVar[str] = "shift"
    claim: ClassVar[type[Claim]] = Shift
    headline: ClassVar[str] = "auc"
    source: ClassVar[str] = (
        "The question: Brunner and Montuoro 2024 (arXiv 2409.13875), who hold a divergence of "
        "the shift's round against other rounds; the scores and the controls are ours"
    )

    def truth(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Shift
    ) -> Shift:
        """The first shift of which both sides were heard, and the shares on both.

        `since` is the first of these rounds in which the target trained on new data; None
        where no shift came, or where nothing from before it was heard. The shares before are
        those of all rounds before that; the shares after, those of the target's last round, so
        that a gradual drift is held against where it led to.

        Of `COHORT`, each client counts by its examples a round, and a client heard on one side
        only as if it had not changed.

        Where nothing shifted the change is 0, and the shares are those of all rounds.

        Raises:
            ValueError: if the target trained in none of the rounds, or on no example.

        """
        counts = truth.label_counts(target, rounds)
        if not bool(counts.any()):
            raise ValueError(f"{target} held no examples in the rounds {sorted(rounds)}")
        parties = {who for _, who in truth.counts if target in (who, COHORT)}
        heard = {who: sorted(truth.rounds_of(who).intersection(rounds)) for who in parties}
        heard = {who: own for who, own in heard.items() if own}
        since = min(
            (
                first
                for who, own in heard.items()
                if (first := _since(own, truth.shifts_of(who))) is not None
            ),
            default=None,
        )
        if since is None:
            after = normalised(counts.double())
            before = after
        else:
            starts = {
                who: [n for n in own if n < since] or own[:1] for who, own in heard.items()
            }
            before = _shares(truth, starts)
            after = _shares(truth, {who: own[-1:] for who, own in heard.items()})
        return Shift(Timeline(since=since), _certain(after - before), _certain(after))

    def blind(self, asked: Shift, knowledge: Knowledge) -> Mapping[str, Shift]:
        """No change, all labels alike; since then the auxiliary examples' shares."""
        nothing = torch.zeros(knowledge.classes, dtype=torch.float64)
        alike = torch.full_like(nothing, 1 / len(nothing))
        blind = {"no change": Shift(Timeline(), _certain(nothing), _certain(alike))}
        prior = knowledge.auxiliary_shares()
        if prior is not None:
            blind["auxiliary prior"] = Shift(Timeline(), after=_certain(prior.to(nothing)))
        return blind

    def told(self, truth: Shift) -> Mapping[str, Shift]:
        """Told what the target held before the shift: the same as then."""
        if truth.change is None or truth.after is None:
            raise ValueError("the truth about a shift says the change and the shares after it")
        nothing = torch.zeros_like(truth.change.value)
        before = truth.after.value - truth.change.value
        return {"as before": Shift(Timeline(), _certain(nothing), _certain(before))}

    def score(self, claim: Shift, truth: Shift, guesses: Guesses[Shift]) -> tuple[Score, ...]:
        """Every figure for which the claim makes a statement, in the order told above.

        Raises:
            ValueError: if the claim speaks of another number of labels than the truth.

        """
        since = truth.evidence.since
        if since is None:
            return false_alarm_scores(claim.evidence)
        claimed = _in_float64(claim, truth)
        scores = list(alarm_scores(claim.evidence, since))
        for yardstick in CHANGE:
            value = yardstick.measure(claimed, truth)
            if value is None:
                continue
            score = Score(
                yardstick.name,
                value,
                yardstick.better,
                yardstick.of_each(guesses.blind, truth),
                yardstick.of_each(guesses.told, truth),
            )
            scores.append(score)
            if yardstick.measure is direction and is_detected(claim.evidence, since):
                scores.append(replace(score, name="direction_detected"))
        return tuple(scores)


def _since(heard: list[int], shifts: tuple[int, ...]) -> int | None:
    """The first round heard on new data, where something was heard before too."""
    for shift in shifts:
        later = [number for number in heard if number >= shift]
        if later and len(later) < len(heard):
            return later[0]
    return None


def _shares(truth: GroundTruth, rounds: dict[Party, list[int]]) -> Float[Tensor, " classes"]:
    """Label shares of some clients together, each by its mean counts over its own rounds."""
    held = [
        truth.label_counts(who, own).double() / len(own) for who, own in sorted(rounds.items())
    ]
    return normalised(torch.stack(held).sum(0))


def _certain(value: Float[Tensor, " classes"]) -> Measured:
    return Measured(value, value.new_zeros(len(value), len(value)))


def _in_float64(claim: Shift, truth: Shift) -> Shift:
    """The claim in float64 on the truth's device."""
    return replace(
        claim, change=_like(claim.change, truth.change), after=_like(claim.after, truth.after)
    )


def _like(told: Measured | None, true: Measured | None) -> Measured | None:
    if told is None or true is None:
        return None
    if told.value.shape != true.value.shape:
        raise ValueError(
            f"the claim speaks of {len(told.value)} labels, the truth of {len(true.value)}"
        )
    return Measured(told.value.to(true.value), told.covariance.to(true.covariance))
