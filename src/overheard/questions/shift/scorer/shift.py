"""The scorer of claims about a change of a target's data."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import Claim, Timeline
from overheard.core.errors import ClaimError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.truth import GroundTruth
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.shift.claim import GaussianEstimate, Shift
from overheard.statistics.score_metric import ScoreMetric

ROUNDING = 1e-6
"""Tolerance for rounding: smaller changes count as 0, and intervals are widened by it."""


def risen_labels(truth: Shift) -> Bool[Tensor, " classes"] | None:
    """Return the labels whose true share rose; None if there are none."""
    if truth.change is None:
        return None
    labels = truth.change.value > ROUNDING
    return labels if bool(labels.any()) else None


def _change_l1(claim: Shift, truth: Shift) -> float | None:
    if claim.change is None or truth.change is None:
        return None
    return float((claim.change.value - truth.change.value).abs().sum())


def direction_score(claim: Shift, truth: Shift) -> float | None:
    """Return 1 if the labels that rose are claimed to rise in sum, 0 if to fall, else 0.5."""
    labels = risen_labels(truth)
    if claim.change is None or labels is None:
        return None
    return (float(claim.change.value[labels].sum().sign()) + 1) / 2


def _signs_right(claim: Shift, truth: Shift) -> float | None:
    if claim.change is None or truth.change is None or risen_labels(truth) is None:
        return None
    true = truth.change.value
    correct = (claim.change.value.sign() * true.sign() + 1) / 2  # (classes,)
    return float((correct * true.abs()).sum() / true.abs().sum())


def _risen_error(claim: Shift, truth: Shift) -> float | None:
    labels = risen_labels(truth)
    if claim.shares_after is None or truth.shares_after is None or labels is None:
        return None
    return abs(float((claim.shares_after.value - truth.shares_after.value)[labels].sum()))


def _risen_coverage(claim: Shift, truth: Shift) -> float | None:
    labels = risen_labels(truth)
    if claim.shares_after is None or truth.shares_after is None or labels is None:
        return None
    _, low, high = claim.shares_after.sum_over(labels)
    true, _, _ = truth.shares_after.sum_over(labels)
    return float(low - ROUNDING <= true <= high + ROUNDING)


def _coverage(claim: Shift, truth: Shift) -> float | None:
    if claim.change is None or truth.change is None:
        return None
    error = (claim.change.value - truth.change.value).abs()
    return float((error <= _half_widths(claim.change) + ROUNDING).double().mean())


def _width(claim: Shift, truth: Shift) -> float | None:
    return None if claim.change is None else 2 * float(_half_widths(claim.change).mean())


def _half_widths(estimate: GaussianEstimate) -> Tensor:
    """Return half the width of the interval of each number."""
    return estimate.value.new_tensor(estimate.interval().high) - estimate.value


CHANGE_MEASURES = (
    ScoreMetric("change_l1", "lower", _change_l1),
    ScoreMetric("direction", "higher", direction_score),
    ScoreMetric("signs_right", "higher", _signs_right),
    ScoreMetric("risen_error", "lower", _risen_error),
    ScoreMetric("risen_coverage", "higher", _risen_coverage, is_guessable=False),
    ScoreMetric("coverage", "higher", _coverage, is_guessable=False),
    ScoreMetric("width", "lower", _width, is_guessable=False),
)


def can_raise_alarm(evidence: Timeline) -> bool:
    """Return whether the claim has a threshold or an alarm."""
    return evidence.threshold is not None or evidence.alarm is not None


def is_detected(evidence: Timeline, since: int) -> bool:
    """Return whether the alarm was raised in the true round or later, and not before."""
    return evidence.alarm is not None and evidence.alarm >= since


def alarm_scores(evidence: Timeline, since: int) -> tuple[Score, ...]:
    """Score the evidence of a run with a shift in round `since`."""
    scores = []
    stated = _stated_rate("an alarm at random", evidence)
    if can_raise_alarm(evidence):
        detected = is_detected(evidence, since)
        early = evidence.alarm is not None and not detected
        scores += [
            Score("detected", float(detected), "higher", stated, {}),
            Score(
                "false_alarm_before",
                float(early),
                "lower",
                {},
                _stated_rate("stated", evidence),
            ),
        ]
    if evidence.alarm is not None and is_detected(evidence, since):
        scores.append(Score("delay", float(evidence.alarm - since), "lower", {}, {}))
    if evidence.since is not None and evidence.rounds:
        middle = float(median(evidence.rounds))
        scores.append(
            Score(
                "round_error",
                float(abs(evidence.since - since)),
                "lower",
                {"the middle of the run": abs(middle - since)},
                {},
            )
        )
    return tuple(scores)


def false_alarm_scores(evidence: Timeline) -> tuple[Score, ...]:
    """Score the evidence of a run in which the target's data did not shift."""
    if not can_raise_alarm(evidence):
        return ()
    raised = float(evidence.alarm is not None)
    return (Score("false_alarm", raised, "lower", {}, _stated_rate("stated", evidence)),)


def _stated_rate(name: str, evidence: Timeline) -> dict[str, float]:
    rate = evidence.false_alarm_rate
    return {} if rate is None else {name: rate}


@final
@dataclass(frozen=True, slots=True)
class ShiftScorer(Scorer[Shift]):
    """Whether a shift was detected, when, and how accurate its claimed direction is.

    The headline, `auc`, needs many runs with a shift and their controls. It is not a score of
    one claim and is computed in `statistics.detection`.

    For a target whose data shifted, if the claim states a threshold or raises an alarm:

    - `detected`: 1 if the alarm was raised in the first round with new data or later, and not
      before. The uninformed guess is a random alarm with the claim's stated false alarm rate.
    - `false_alarm_before`: 1 if it was raised before; the stated rate is a reference.
    - `delay`: rounds from the true one to the alarm, only if detected. The alarm of a round
      rests on the rounds up to it alone (it is online), so this is how late one would know.

    If the claim states the round, looking back over all rounds (it is retrospective):

    - `round_error`: its error in rounds; the uninformed guess is the middle of the claim's
      rounds.

    If it states which labels rose and fell (true change c, claimed change d):

    - `change_l1`: sum |d - c|, 0 to 4; the uninformed guess is no change.
    - `direction_score`: 1 if d, summed over the labels that truly rose, is above 0; 0 if below;
      0.5 if it is 0, as in a claim of no change.
    - `direction_detected`: the same, only if detected.
    - `signs_right`: the share of the true change with the correct sign, sum |c| [sign correct]
      / sum |c|; a claimed change of 0 counts half.
    - `coverage`: the share of labels whose true change is inside the claimed interval; `width`:
      the mean width of the intervals. They belong together; neither has an uninformed guess.

    If it states the shares after the change:

    - `risen_error`: the error of the total share of the labels that truly rose.
    - `risen_coverage`: 1 if that true share is inside the claimed interval, else 0.

    A shift without a change of label shares has no direction and no risen labels.

    For a target whose data did not shift, as in a control, there is only `false_alarm`: 1 if
    any alarm was raised; the stated rate is a reference.
    """

    name: ClassVar[str] = "shift"
    claim_type: ClassVar[type[Claim]] = Shift
    headline: ClassVar[str] = "auc"
    source: ClassVar[str] = (
        "The question: Brunner and Montuoro 2024 (arXiv 2409.13875), who compare a divergence "
        "in the shift's round with other rounds; the scores and the controls are Overheard's"
    )

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Shift
    ) -> Shift:
        """Return the first shift with rounds before and after it, and the shares of both.

        `since` is the first of these rounds in which the target trained on new data; None if
        there was no shift, or no round before it. The shares before are those of all rounds
        before `since`. The shares after are those of the target's last round, so that the end
        of a gradual drift counts.

        Where a client's examples are random draws, shares are those that it draws from: a shift
        is a change of them, and not of what happened to be drawn. Elsewhere they are the shares
        among the examples that it holds.

        For `COHORT`, each client is weighted by its examples per round. A client with rounds
        only before or only after counts as unchanged.

        Without a shift the change is 0, and the shares are those of all rounds.

        Raises:
            NeedsError: if label counts are unknown, or are of none of the rounds.
            ValueError: if the target trained on no example.

        """
        held, drawn = truth.facts.need(LabelCounts), truth.facts.get(DrawnShares)
        counts = held.expected_counts_of(target, rounds, drawn)
        if not bool(counts.any()):
            raise ValueError(f"{target} held no examples in rounds {sorted(rounds)}")
        shifts = truth.facts.get(Shifts) or Shifts({})
        parties = {party for _, party in held.counts if target in (party, COHORT)}
        rounds_of = {
            party: sorted(held.rounds_of(party).intersection(rounds)) for party in parties
        }
        rounds_of = {party: numbers for party, numbers in rounds_of.items() if numbers}
        since = min(
            (
                first
                for party, numbers in rounds_of.items()
                if (first := _first_round_on_new_data(numbers, shifts.shifts_of(party)))
                is not None
            ),
            default=None,
        )
        if since is None:
            after = normalize_to_shares(counts)
            before = after
        else:
            starts = {
                party: [number for number in numbers if number < since] or numbers[:1]
                for party, numbers in rounds_of.items()
            }
            before = _pooled_shares(truth, starts)
            ends = {party: numbers[-1:] for party, numbers in rounds_of.items()}
            after = _pooled_shares(truth, ends)
        return Shift(
            Timeline(since=since), _exact_estimate(after - before), _exact_estimate(after)
        )

    def uninformed_guesses(self, claim: Shift, knowledge: Knowledge) -> Mapping[str, Shift]:
        """Return no change with equal shares, and the auxiliary examples' shares after it.

        Raises:
            ClaimError: if the claim has another number of labels than the task.

        """
        for claimed in (claim.change, claim.shares_after):
            if claimed is not None and len(claimed.value) != knowledge.classes:
                raise ClaimError(
                    f"the claim has {len(claimed.value)} labels, the task has "
                    f"{knowledge.classes}"
                )
        no_change = torch.zeros(knowledge.classes, dtype=torch.float64)
        uniform = torch.full_like(no_change, 1 / len(no_change))
        uninformed = {
            "no change": Shift(Timeline(), _exact_estimate(no_change), _exact_estimate(uniform))
        }
        prior = knowledge.auxiliary_label_shares()
        if prior is not None:
            uninformed["auxiliary prior"] = Shift(
                Timeline(), shares_after=_exact_estimate(prior.to(no_change))
            )
        return uninformed

    def informed_guesses(self, truth: Shift) -> Mapping[str, Shift]:
        """Return a guess that knows the shares before the shift and repeats them."""
        if truth.change is None or truth.shares_after is None:
            raise ValueError(
                "the ground truth of a shift must state the change and the shares after it"
            )
        no_change = torch.zeros_like(truth.change.value)
        before = truth.shares_after.value - truth.change.value
        return {
            "as before": Shift(Timeline(), _exact_estimate(no_change), _exact_estimate(before))
        }

    def score(self, claim: Shift, truth: Shift, guesses: Guesses[Shift]) -> tuple[Score, ...]:
        """Return every score that applies to the claim, in the order of the class docstring.

        Raises:
            ValueError: if the claim and the ground truth have different numbers of labels.

        """
        since = truth.evidence.since
        if since is None:
            return false_alarm_scores(claim.evidence)
        claimed = _in_float64(claim, truth)
        scores = list(alarm_scores(claim.evidence, since))
        for metric in CHANGE_MEASURES:
            value = metric.measure(claimed, truth)
            if value is None:
                continue
            score = Score(
                metric.name,
                value,
                metric.better,
                metric.measure_each(guesses.uninformed, truth),
                metric.measure_each(guesses.informed, truth),
            )
            scores.append(score)
            if metric.measure is direction_score and is_detected(claim.evidence, since):
                scores.append(replace(score, name="direction_detected"))
        return tuple(scores)


def _first_round_on_new_data(rounds: list[int], shifts: tuple[int, ...]) -> int | None:
    """Return the first of these rounds with new data, if there is a round before it."""
    for shift in shifts:
        later = [number for number in rounds if number >= shift]
        if later and len(later) < len(rounds):
            return later[0]
    return None


def _pooled_shares(
    truth: GroundTruth, rounds: dict[Party, list[int]]
) -> Float[Tensor, " classes"]:
    """Return the pooled label shares of some clients, from their mean counts per round."""
    counts, drawn = truth.facts.need(LabelCounts), truth.facts.get(DrawnShares)
    mean_counts = [
        counts.expected_counts_of(party, numbers, drawn) / len(numbers)
        for party, numbers in sorted(rounds.items())
    ]
    return normalize_to_shares(torch.stack(mean_counts).sum(0))


def _exact_estimate(value: Float[Tensor, " classes"]) -> GaussianEstimate:
    return GaussianEstimate(value, value.new_zeros(len(value), len(value)))


def _in_float64(claim: Shift, truth: Shift) -> Shift:
    """Return the claim in float64 on the device of the ground truth."""
    return replace(
        claim,
        change=_cast_like(claim.change, truth.change),
        shares_after=_cast_like(claim.shares_after, truth.shares_after),
    )


def _cast_like(
    claimed: GaussianEstimate | None, true: GaussianEstimate | None
) -> GaussianEstimate | None:
    if claimed is None or true is None:
        return None
    if claimed.value.shape != true.value.shape:
        raise ClaimError(
            f"the claim has {len(claimed.value)} labels, the ground truth {len(true.value)}"
        )
    return replace(
        claimed,
        value=claimed.value.to(true.value),
        covariance=claimed.covariance.to(true.covariance),
    )
