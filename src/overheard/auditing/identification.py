"""What all targets of a run together tell of how well people are recognised."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import final

import numpy as np

from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.row import CONTROL, Row, place_of
from overheard.questions.attribute.scorer import AttributeScorer
from overheard.questions.attribute.statistics.choices import choices
from overheard.questions.identity.scorer import IdentityScorer
from overheard.questions.identity.statistics.open_set import (
    identification_rate,
    identified,
    open_set,
)
from overheard.questions.identity.statistics.paired_gain import (
    mean_precision,
    paired_gain,
    published_beside,
)
from overheard.questions.identity.statistics.permutation import permuted_precisions
from overheard.questions.identity.statistics.ranking import Ranking, by_user, matches, rankings
from overheard.questions.same_sender.scorer import SameSenderScorer
from overheard.questions.same_sender.statistics.pairs import sender_matches
from overheard.statistics.estimate import LEVEL, Estimate, estimate
from overheard.statistics.matching import Matches, curve, equal_error_rate, matching_auc
from overheard.statistics.resample import resampled

FALSE_ALARMS = 1
"""Percent of unknown targets taken for a known user at which `dir_at_1_percent` is told."""

NO_GUESS: Mapping[str, float] = MappingProxyType({})


def identification_rows(findings: Sequence[Finding], seed: Seed) -> tuple[Row, ...]:
    """Rows for each arm, observers, attack, question and rounds heard. Controls stand beside.

    Of who a target is:

    - `mean_average_precision`: for each known user the average precision of all targets ranked
      by its score, ties broken by chance; the mean over users who sent something. Blind: what
      a random ranking is expected to get, which is more than 1 / U; that stands beside.
    - `times_chance`: the same over the blind figure, as papers tell it. It grows with U.
    - `matching_auc`, `equal_error_rate`: of all pairs of a target and a user, told apart by one
      threshold on the score.
    - `dir_at_1_percent`: the share of known targets named right at the first try and with more
      evidence than all but 1 % of the unknown ones; only where there are unknown ones. The
      finest rate that they can tell is 1 / their number, which stands beside: with fewer than
      100 none of them passes.
    - `control_excess`: the control's mean average precision, beside what it is where devices'
      identities are swapped by chance, whole devices at a time since their targets clump: the
      mean is the blind figure, the ends of 95 % of `DRAWS` permutations the references. The
      gain's interval is where that leaves the control: all above 0, and it tells people apart
      by something else than their examples.
    - `gain_over_published`: the gain in mean average precision over the strongest version of
      the published attack that was asked about the same targets (`paired_gain`).

    Of which targets are of one sender: `matching_auc` and `equal_error_rate` over the pairs
    compared. Of an attribute: `balanced_accuracy`, the mean over true values.

    Precisions are means over the users of all runs, the others means over runs, each of which
    weighs alike. Intervals draw runs, then people within a run with all that is theirs
    (two-stage cluster bootstrap); where everybody is told apart they have no width, however
    few people there are.
    """
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.candidates:
            groups[place_of(finding.cell)].append(finding)
    return tuple(
        row
        for members in groups.values()
        for row in _rows(members, published_beside(members, groups.values()), seed)
    )


def references_beside(
    name: str, planned: Sequence[Finding], control: Sequence[Finding]
) -> dict[str, float]:
    """What stands beside the mean of a score of single findings: the control, the base rate."""
    beside = {}
    if name == "unseen":
        unknown = np.mean([all(s.name != "top1" for s in one.scores) for one in planned])
        beside["the base rate"] = float(unknown * (1 - unknown))
    values = [score.value for one in control for score in one.scores if score.name == name]
    if values:
        beside[CONTROL] = float(np.mean(values))
    return beside


def _rows(members: Sequence[Finding], published: Sequence[Finding], seed: Seed) -> list[Row]:
    place = _Place(
        tuple(finding for finding in members if not finding.cell.is_control),
        tuple(finding for finding in members if finding.cell.is_control),
    )
    if not place.planned:
        return []
    cell = place.planned[0].cell
    draws = seed.child("people", cell.arm, cell.attack)
    if cell.question == IdentityScorer.name:
        return [*_of_identities(place, draws), *_gain(place, published, seed)]
    if cell.question == SameSenderScorer.name:
        pairs, control = sender_matches(place.planned), sender_matches(place.control)
        return _of_pairs(place, pairs, control, draws)
    if cell.question == AttributeScorer.name:
        return _of_attributes(place, draws)
    return []


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """The findings that rows sum up, and those of the control, beside them."""

    planned: tuple[Finding, ...]
    control: tuple[Finding, ...]

    def row(
        self,
        score: str,
        better: Better,
        value: Estimate,
        blinds: Mapping[str, float] = NO_GUESS,
        references: Mapping[str, float] = NO_GUESS,
    ) -> Row:
        cell = self.planned[0].cell
        blind = next(iter(blinds.values()), None)
        return Row(
            arm=cell.arm,
            observers=cell.observers,
            attack=cell.attack,
            question=cell.question,
            rounds=cell.rounds,
            score=score,
            better=better,
            value=value,
            blinds=blinds,
            references=references,
            blind=blind,
            gain=None if blind is None else _gain_over(value, blind, better),
            targets=len({finding.target for finding in self.planned}),
            seeds=len({finding.cell.seed for finding in self.planned}),
        )


def _gain_over(value: Estimate, blind: float, better: Better) -> Estimate:
    sign = 1 if better == "higher" else -1
    ends = (value.low, value.high)[::sign]
    low, high = (None if end is None else sign * (end - blind) for end in ends)
    return Estimate(sign * (value.mean - blind), low, high)


def _of_identities(place: _Place, seed: Seed) -> list[Row]:
    runs, control = rankings(place.planned), rankings(place.control)
    if not runs:
        return []
    precisions = by_user(runs)
    seeds = np.array([number for number, _ in precisions])
    value = estimate(np.array(list(precisions.values())), seeds, seed.child("precision"))
    chance = float(np.concatenate([run.chances() for run in runs]).mean())
    beside = {"1 / users": float(np.mean([1 / len(run.users) for run in runs]))}
    if control:
        beside[CONTROL] = _mean(by_user(control).values())
    order = {"a random order": chance}
    return [
        place.row("mean_average_precision", "higher", value, order, beside),
        place.row("times_chance", "higher", _times(value, 1 / chance), {"a random order": 1.0}),
        *_of_pairs(place, tuple(map(matches, runs)), tuple(map(matches, control)), seed),
        *_of_open_sets(place, runs, control, seed),
        *([_excess(place, control, seed)] if control else []),
    ]


def _times(value: Estimate, factor: float) -> Estimate:
    low, high = (None if end is None else factor * end for end in (value.low, value.high))
    return Estimate(factor * value.mean, low, high)


def _of_pairs(
    place: _Place, runs: Sequence[Matches], control: Sequence[Matches], seed: Seed
) -> list[Row]:
    told = [run for run in runs if run.has_both]
    if not told:
        return []
    others = [curve(run) for run in control if run.has_both]
    areas = {CONTROL: _mean(other.area()[0] for other in others)} if others else {}
    errors = {CONTROL: _mean(other.equal_error()[0] for other in others)} if others else {}
    draws, coin = seed.child("pairs"), {"a coin": 0.5}
    return [
        place.row("matching_auc", "higher", matching_auc(told, draws), coin, areas),
        place.row("equal_error_rate", "lower", equal_error_rate(told, draws), coin, errors),
    ]


def _of_open_sets(
    place: _Place, runs: Sequence[Ranking], control: Sequence[Ranking], seed: Seed
) -> list[Row]:
    sets = [(run, held) for run in runs if (held := open_set(run)) is not None]
    if not sets:
        return []
    others = [held for run in control if (held := open_set(run)) is not None]
    beside = {"unknown targets": float(sum(len(held.strange) for _, held in sets))}
    if others:
        beside[CONTROL] = _mean(identified(held, float(FALSE_ALARMS)) for held in others)
    blind = _mean(
        len(held.strange) * FALSE_ALARMS // 100 / len(held.strange) / len(run.users)
        for run, held in sets
    )
    value = identification_rate(
        [held for _, held in sets], float(FALSE_ALARMS), seed.child("open")
    )
    guess = {"a random order, an alarm at random": blind}
    return [place.row(f"dir_at_{FALSE_ALARMS}_percent", "higher", value, guess, beside)]


def _excess(place: _Place, control: Sequence[Ranking], seed: Seed) -> Row:
    precisions = by_user(control)
    seeds = np.array([number for number, _ in precisions])
    value = estimate(np.array(list(precisions.values())), seeds, seed.child("control"))
    null = permuted_precisions(control, seed.child("permutations"))
    low, high = map(float, np.quantile(null, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    row = _Place(place.control, ()).row(
        "control_excess",
        "higher",
        value,
        {"identities swapped by chance": float(null.mean())},
        {"null 2.5 %": low, "null 97.5 %": high},
    )
    # What is asked is whether the control lies within the null, not how far it would wander.
    beyond = Estimate(value.mean - float(null.mean()), value.mean - high, value.mean - low)
    return replace(row, gain=beyond)


def _of_attributes(place: _Place, seed: Seed) -> list[Row]:
    runs, control = choices(place.planned), choices(place.control)
    if not runs:
        return []
    beside = (
        {CONTROL: _mean(run.balanced_accuracy().once() for run in control)} if control else {}
    )
    value = resampled([run.balanced_accuracy() for run in runs], seed.child("balanced"))
    blind = {"always the same": _mean(1 / run.right.shape[1] for run in runs)}
    return [place.row("balanced_accuracy", "higher", value, blind, beside)]


def _gain(place: _Place, published: Sequence[Finding], seed: Seed) -> list[Row]:
    if not published or not rankings(place.planned):
        return []
    attack, base = place.planned[0].cell.attack, published[0].cell.attack
    value = paired_gain((*place.planned, *published), attack, base, seed)
    beside = {base: mean_precision(published)}
    return [place.row("gain_over_published", "higher", value, references=beside)]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
