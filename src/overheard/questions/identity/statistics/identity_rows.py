"""What all targets of a run together tell of how well known users are recognised."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from overheard.core.seeds import Seed
from overheard.findings.beside_control import (
    BesideControl,
    beside_controls,
    mean_in_control,
    pair_rows,
)
from overheard.findings.finding import Finding
from overheard.findings.row import CONTROL, Row
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
from overheard.statistics.estimate import LEVEL, Estimate, estimate

FALSE_ALARMS = 1
"""Percent of unknown targets taken for a known user at which `dir_at_1_percent` is told."""


def identity_rows(findings: Sequence[Finding], seed: Seed) -> tuple[Row, ...]:
    """Return rows for each arm, observers, attack and rounds heard; the control stands beside.

    - `mean_average_precision`: for each known user the average precision of all targets ranked
      by its score, ties broken by chance; the mean over users who sent something. Blind: what
      a random ranking is expected to get, which is more than 1 / U; that stands beside.
    - `times_chance`: the same over the blind figure, as papers tell it. It grows with U.
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

    - `matching_auc`, `equal_error_rate`: see `findings.beside_control.pair_rows`.

    Precisions are means over the users of all runs, the others means over runs, each of which
    weighs alike. Intervals draw runs, then people within a run with all that is theirs
    (two-stage cluster bootstrap); where everybody is told apart they have no width, however
    few people there are.
    """
    places = beside_controls(findings)
    every = [place.every for place in places]
    return tuple(
        row
        for place in places
        for row in (
            *_of_identities(place, place.draws(seed)),
            *_gain(place, published_beside(place.every, every), seed),
        )
    )


def identity_references(
    score: str, planned: Sequence[Finding], control: Sequence[Finding]
) -> Mapping[str, float]:
    """Return what stands beside the mean of a score: the base rate, and the control."""
    beside = dict[str, float]()
    if score == "unseen":
        unknown = np.mean([all(s.name != "top1" for s in one.scores) for one in planned])
        beside["the base rate"] = float(unknown * (1 - unknown))
    return {**beside, **mean_in_control(score, control)}


def _of_identities(place: BesideControl, seed: Seed) -> list[Row]:
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
        *pair_rows(place, tuple(map(matches, runs)), tuple(map(matches, control)), seed),
        *_of_open_sets(place, runs, control, seed),
        *([_excess(place, control, seed)] if control else []),
    ]


def _times(value: Estimate, factor: float) -> Estimate:
    low, high = (None if end is None else factor * end for end in (value.low, value.high))
    return Estimate(factor * value.mean, low, high)


def _of_open_sets(
    place: BesideControl, runs: Sequence[Ranking], control: Sequence[Ranking], seed: Seed
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


def _excess(place: BesideControl, control: Sequence[Ranking], seed: Seed) -> Row:
    precisions = by_user(control)
    seeds = np.array([number for number, _ in precisions])
    value = estimate(np.array(list(precisions.values())), seeds, seed.child("control"))
    null = permuted_precisions(control, seed.child("permutations"))
    low, high = map(float, np.quantile(null, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    row = BesideControl(place.control, ()).row(
        "control_excess",
        "higher",
        value,
        {"identities swapped by chance": float(null.mean())},
        {"null 2.5 %": low, "null 97.5 %": high},
    )
    # What is asked is whether the control lies within the null, not how far it would wander.
    beyond = Estimate(value.mean - float(null.mean()), value.mean - high, value.mean - low)
    return replace(row, gain=beyond)


def _gain(place: BesideControl, published: Sequence[Finding], seed: Seed) -> list[Row]:
    if not published or not rankings(place.planned):
        return []
    attack, base = place.planned[0].cell.attack, published[0].cell.attack
    value = paired_gain((*place.planned, *published), attack, base, seed)
    beside = {base: mean_precision(published)}
    return [place.row("gain_over_published", "higher", value, references=beside)]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
