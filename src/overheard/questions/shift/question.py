"""The question: whether, when and how a client's data changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.score_row import ScoreRow
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.measures import MEASURES
from overheard.questions.shift.scorer.shift import ShiftScorer
from overheard.questions.shift.statistics.detection import detection_rows
from overheard.questions.shift.statistics.pairs import RunPair, pair_runs, peak_of
from overheard.statistics.permutation_test import (
    RePairedFits,
    no_test,
    number_values,
    re_drawn_runs,
    smallest_p_value,
)


@final
@dataclass(frozen=True, slots=True)
class ShiftQuestion(Question[Shift]):
    """Whether, when and how a client's data changed."""

    name = "shift"
    source = ShiftScorer.source
    measures = MEASURES
    reads = (LabelCounts, DrawnShares, Shifts)
    advice_without_pairings = (
        'simulate clients that shift (data.shifts), with data.exchanges = "natural"'
    )
    margins = MappingProxyType({"auc": 0.15})
    control = "exchange"
    needs_all_rounds = True

    @property
    def scorer(self) -> ShiftScorer:
        """Return the scorer of these claims."""
        return ShiftScorer()

    def is_averaged(self, finding: Finding) -> bool:
        """Return True also for natural controls: each score applies to one kind of run only.

        Alarms in exact controls are rows of their own, see `summary_rows`.
        """
        return finding.cell.control != "exact"

    def summary_rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[ScoreRow]:
        """Return rows that compare runs with a shift with their controls."""
        return detection_rows(findings, seed)

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare runs with a shift with their natural controls."""
        return re_pair_shifts(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of ways to choose a run of each seed, with a shift or a control."""
        return int((1 + sizes.controls) ** sizes.runs)


NEEDS_NATURAL_CONTROLS = "the test needs natural controls, whose examples are drawn at random"


def re_pair_shifts(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the evidence fits the runs with a shift, and their natural controls.

    If a shift changed nothing, any natural control of a seed might as well be the run with the
    shift, for all its targets together. An exact control might not: its label counts do not
    vary. A seed counts with as many controls as all attacks and targets have.
    """
    attacks = list(dict.fromkeys(finding.cell.attack for finding in findings))
    pairs = [
        {
            (pair.seed, pair.target): pair
            for pair in pair_runs(
                [finding for finding in findings if finding.cell.attack == attack], "natural"
            )
        }
        for attack in attacks
    ]
    places = list(dict.fromkeys(place for of_attack in pairs for place in of_attack))
    if not places:
        return no_test(NEEDS_NATURAL_CONTROLS)
    seeds = number_values(number for number, _ in places)
    alternatives = [
        1
        + min(
            len(pair.controls)
            for of_attack in pairs
            for pair in of_attack.values()
            if pair.seed == number
        )
        for number in seeds
    ]
    choices = re_drawn_runs(alternatives, seed)
    fits = flipped_fits(
        np.stack([_peaks(of_attack, places, max(alternatives)) for of_attack in pairs]),
        np.array([seeds[number] for number, _ in places]),
        choices,
    )
    possible = int(np.prod(alternatives, dtype=object))
    return RePairedFits(fits, smallest_p_value(possible, len(choices)))


def _peaks(
    pairs: Mapping[tuple[int, Party], RunPair],
    places: Sequence[tuple[int, Party]],
    alternatives: int,
) -> Float[np.ndarray, "targets alternatives"]:
    peaks = np.full((len(places), alternatives), np.nan)
    for row, place in zip(peaks, places, strict=True):
        if place in pairs:
            values = [peak_of(one) for one in (pairs[place].shifted, *pairs[place].controls)]
            row[: len(values)] = values[:alternatives]
    return peaks


def flipped_fits(
    peaks: Float[np.ndarray, "attacks targets alternatives"],
    runs: Int[np.ndarray, " targets"],
    choices: Int[np.ndarray, "pairings runs"],
) -> Float[np.ndarray, "pairings attacks"]:
    """Return the sum over targets of the rank of the evidence in the run with the shift.

    In each pairing, another run of a seed may stand for the one with the shift. Ranks are
    among all runs of all seeds; ties share their mean rank.

    Args:
        peaks: the largest evidence in the run with the shift first, then in each natural
            control of its seed. Minus infinity = no evidence; NaN = no such control, or no
            claim about this target.
        runs: the seed of each target, from 0 on.
        choices: the number of the run of each seed that stands for the one with the shift.

    """
    attacks, targets, _ = peaks.shape
    from scipy.stats import rankdata  # only here: importing it takes half a second

    ranks = rankdata(peaks.reshape(attacks, -1), axis=1, nan_policy="omit").reshape(peaks.shape)
    chosen = choices[:, runs]  # (pairings, targets)
    places = np.arange(targets)
    return np.stack([np.nansum(table[places, chosen], axis=1) for table in ranks], axis=1)
