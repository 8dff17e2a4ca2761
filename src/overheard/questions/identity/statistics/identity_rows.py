"""Rows of results that rate the re-identification of all targets of a run together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import (
    ControlledFindings,
    control_mean,
    group_with_controls,
    pair_rows,
)
from overheard.findings.finding import Finding
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
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
from overheard.statistics.estimate import CONFIDENCE_LEVEL, Estimate, estimate_mean

FALSE_ALARMS = 1
"""Percentage of unknown targets mistaken for a known user in `dir_at_1_percent`."""


def identity_rows(findings: Sequence[Finding], seed: Seed) -> tuple[ScoreRow, ...]:
    """Return rows for each arm, observers, attack and observed rounds, with the control.

    - `mean_average_precision`: for each known user, the average precision of all targets ranked
      by its score, ties broken at random; the mean over users who sent something. Uninformed
      guess: the expectation of a random ranking, which is above 1 / U; 1 / U is a reference.
    - `times_chance`: the same divided by the uninformed guess, as in papers. It grows with U.
    - `dir_at_1_percent`: the share of known targets whose true user ranks first with more
      evidence than all but 1 % of the unknown targets; only if there are unknown targets. The
      finest measurable rate is 1 / their number, so with fewer than 100 none may pass.
    - `control_excess`: the control's mean average precision, compared with random permutations
      of users among whole devices, since targets of a device are correlated. The uninformed
      guess is the mean of `BOOTSTRAP_DRAWS` permutations; the references are the ends of their 95 %
      range. The interval of the gain is the control relative to that range: if it is all above
      0, the control identifies users by something other than their examples.
    - `gain_over_published`: the gain in mean average precision over the best version of the
      published attack on the same targets (`paired_gain`).

    - `matching_auc`, `equal_error_rate`: see `findings.beside_control.pair_rows`.

    Precisions are means over the users of all runs; the others are means over runs with equal
    weight. Intervals resample runs, then users within a run with all their targets (two-stage
    cluster bootstrap). If every user is identified, they have zero width, however few users.
    """
    places = group_with_controls(findings)
    all_findings = [place.all_findings for place in places]
    return tuple(
        row
        for place in places
        for row in (
            *_of_identities(place, place.interval_seed(seed)),
            *_gain(place, published_beside(place.all_findings, all_findings), seed),
        )
    )


def identity_references(
    score: str, planned: Sequence[Finding], control: Sequence[Finding]
) -> Mapping[str, float]:
    """Return the references of a mean score: the base rate and the control."""
    references = dict[str, float]()
    if score == "unseen":
        unknown = np.mean(
            [all(score.name != "top1" for score in finding.scores) for finding in planned]
        )
        references["the base rate"] = float(unknown * (1 - unknown))
    return {**references, **control_mean(score, control)}


def _of_identities(place: ControlledFindings, seed: Seed) -> list[ScoreRow]:
    runs, control = rankings(place.planned), rankings(place.control)
    if not runs:
        return []
    precisions = by_user(runs)
    seeds = np.array([number for number, _ in precisions])
    value = estimate_mean(np.array(list(precisions.values())), seeds, seed.child("precision"))
    chance = float(np.concatenate([run.chances() for run in runs]).mean())
    references = {"1 / users": float(np.mean([1 / len(run.users) for run in runs]))}
    if control:
        references[CONTROL_NAME] = _mean(by_user(control).values())
    random_order = {"a random order": chance}
    return [
        place.make_row("mean_average_precision", "higher", value, random_order, references),
        place.make_row(
            "times_chance", "higher", _times(value, 1 / chance), {"a random order": 1.0}
        ),
        *pair_rows(place, tuple(map(matches, runs)), tuple(map(matches, control)), seed),
        *_of_open_sets(place, runs, control, seed),
        *([_excess(place, control, seed)] if control else []),
    ]


def _times(value: Estimate, factor: float) -> Estimate:
    low, high = (None if end is None else factor * end for end in (value.low, value.high))
    return Estimate(factor * value.mean, low, high)


def _of_open_sets(
    place: ControlledFindings, runs: Sequence[Ranking], control: Sequence[Ranking], seed: Seed
) -> list[ScoreRow]:
    splits = [(run, split) for run in runs if (split := open_set(run)) is not None]
    if not splits:
        return []
    controls = [split for run in control if (split := open_set(run)) is not None]
    references = {"unknown targets": float(sum(len(split.strange) for _, split in splits))}
    if controls:
        references[CONTROL_NAME] = _mean(
            identified(split, float(FALSE_ALARMS)) for split in controls
        )
    blind = _mean(
        len(split.strange) * FALSE_ALARMS // 100 / len(split.strange) / len(run.users)
        for run, split in splits
    )
    value = identification_rate(
        [split for _, split in splits], float(FALSE_ALARMS), seed.child("open")
    )
    guess = {"a random order, an alarm at random": blind}
    return [
        place.make_row(f"dir_at_{FALSE_ALARMS}_percent", "higher", value, guess, references)
    ]


def _excess(place: ControlledFindings, control: Sequence[Ranking], seed: Seed) -> ScoreRow:
    precisions = by_user(control)
    seeds = np.array([number for number, _ in precisions])
    value = estimate_mean(np.array(list(precisions.values())), seeds, seed.child("control"))
    null = permuted_precisions(control, seed.child("permutations"))
    low, high = map(
        float, np.quantile(null, [(1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2])
    )
    row = ControlledFindings(place.control, ()).make_row(
        "control_excess",
        "higher",
        value,
        {"identities swapped by chance": float(null.mean())},
        {"null 2.5 %": low, "null 97.5 %": high},
    )
    # The gain says whether the control is within the null; its own interval is not needed.
    excess = Estimate(value.mean - float(null.mean()), value.mean - high, value.mean - low)
    return replace(row, gain=excess)


def _gain(
    place: ControlledFindings, published: Sequence[Finding], seed: Seed
) -> list[ScoreRow]:
    if not published or not rankings(place.planned):
        return []
    attack, base = place.planned[0].cell.attack, published[0].cell.attack
    value = paired_gain((*place.planned, *published), attack, base, seed)
    references = {base: mean_precision(published)}
    return [place.make_row("gain_over_published", "higher", value, references=references)]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
