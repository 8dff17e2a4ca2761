"""Figures of re-identification: pairs, cumulative match curves, and precision by user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from overheard.drawing.figures import Panel, ReportFigure
from overheard.drawing.line_charts import Axis, ChartLine, histogram_chart, lines_chart
from overheard.drawing.pair_figures import (
    CURVES_NOTE,
    FALSE_POSITIVE_RATES,
    MAX_ATTACKS,
    TABLE_RATES,
    ExtraColumns,
    NamedRocCurve,
    curve_names,
    figure_title,
    pair_figure,
    percent_cells,
)
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.questions.identity.statistics.open_set import (
    detection_identification_rate,
    split_known_and_unknown,
)
from overheard.questions.identity.statistics.ranking import (
    Ranking,
    build_matches,
    build_rankings,
    precision_by_user,
)

MAX_GUESSES = 50
"""The largest number of guesses for which the cumulative match curve is drawn."""

REPORTED_GUESSES = (1, 5, 10)
"""Numbers of guesses in the table."""

_REPORTED_PERCENTS = [100 * rate for rate in TABLE_RATES[1:]]


@final
@dataclass(frozen=True, slots=True)
class _RankedAttack:
    """One attack with its rankings of all targets, one ranking per run."""

    curve: NamedRocCurve
    rankings: tuple[Ranking, ...]

    @property
    def precisions(self) -> Float[np.ndarray, " users"]:
        return np.array(list(precision_by_user(self.rankings).values()))


def identity_figures(arms: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Draw a figure for each group of observers, arm by arm."""
    return tuple(
        _threat_figure(threat_result, attacks)
        for arm in arms
        for threat_result in arm.threat_results
        if (attacks := _best_attacks(threat_result))
    )


def _best_attacks(threat_result: ThreatResult) -> list[_RankedAttack]:
    """Return the best attacks; a run counts if it has both matching and other pairs."""
    attacks = []
    for attack_result in threat_result.attack_results:
        ranked = build_rankings(
            finding for finding in attack_result.findings if not finding.cell.is_control
        )
        pairs = tuple(one for one in map(build_matches, ranked) if one.has_both_kinds)
        if pairs:
            attacks.append(_RankedAttack(NamedRocCurve(attack_result.label, pairs), ranked))
    return attacks[:MAX_ATTACKS]


def _threat_figure(
    threat_result: ThreatResult, attacks: Sequence[_RankedAttack]
) -> ReportFigure:
    curves, title = [attack.curve for attack in attacks], figure_title(threat_result)
    best = curve_names(curves)[0]
    panels = (
        _cmc_panel(attacks, title),
        _precision_panel(attacks[0], best, title),
        *_open_set_panels(attacks, title),
    )
    note = f"{CURVES_NOTE} The histogram shows only the best attack."
    return pair_figure(threat_result, curves, note, panels, _table_columns(attacks))


def _cmc_panel(attacks: Sequence[_RankedAttack], title: str) -> Panel:
    users = len(attacks[0].rankings[0].users)
    lengths = range(1, min(users, MAX_GUESSES) + 1)
    x = [float(length) for length in lengths]
    lines = [
        ChartLine(
            index, x, (100 * cmc_curve(attack.rankings, lengths)).tolist(), attack.curve.label
        )
        for index, attack in enumerate(attacks)
    ]
    uninformed = ChartLine(0, x, [100 * length / users for length in lengths])
    x_axis = Axis("number of guesses", 1.0, max(2.0, x[-1]))
    y_axis = Axis("true user among the guesses, %", 0.0, 103.0)
    label = f"True user among the first guesses: {title}"
    return Panel(
        "True user among the first guesses",
        lines_chart(lines, uninformed, x_axis, y_axis, label),
    )


def _precision_panel(best: _RankedAttack, name: str, title: str) -> Panel:
    chance = float(np.concatenate([run.random_precisions() for run in best.rankings]).mean())
    x_axis = Axis("average precision, %", 0.0, 100.0)
    chart = histogram_chart(
        (100 * best.precisions).tolist(), 100 * chance, x_axis, f"Average precision: {title}"
    )
    return Panel(f"Average precision by user: {make_printable(name)}", chart)


def _open_set_panels(attacks: Sequence[_RankedAttack], title: str) -> list[Panel]:
    percents = (100 * FALSE_POSITIVE_RATES[::2]).tolist()
    lines = [
        ChartLine(
            index,
            percents,
            (100 * rates).tolist(),
            attack.curve.label,
        )
        for index, attack in enumerate(attacks)
        if (rates := identification_curve(attack.rankings, percents)) is not None
    ]
    if not lines:
        return []
    y_axis = Axis("known users identified, %", 0.0, 103.0)
    x_axis = Axis("false positives among unknown users, %", 0.0, 100.0)
    users = len(attacks[0].rankings[0].users)
    uninformed = ChartLine(0, percents, [rate / users for rate in percents])
    label = f"Known users identified if some targets come from unknown users: {title}"
    return [Panel("With unknown users", lines_chart(lines, uninformed, x_axis, y_axis, label))]


def _table_columns(attacks: Sequence[_RankedAttack]) -> ExtraColumns:
    return ExtraColumns(
        (
            *(f"True user in the top {length}" for length in REPORTED_GUESSES),
            *(
                "Average precision, 10th percentile",
                "Average precision, median",
                "Average precision, 90th percentile",
            ),
            *(f"Identified at {percent:g} % false positives" for percent in _REPORTED_PERCENTS),
        ),
        tuple(map(_table_row, attacks)),
    )


def _table_row(attack: _RankedAttack) -> tuple[str, ...]:
    rates = identification_curve(attack.rankings, _REPORTED_PERCENTS)
    return (
        *percent_cells(cmc_curve(attack.rankings, REPORTED_GUESSES)),
        *percent_cells(np.quantile(attack.precisions, (0.1, 0.5, 0.9))),
        *((NO_NUMBER,) * len(_REPORTED_PERCENTS) if rates is None else percent_cells(rates)),
    )


def cmc_curve(runs: Sequence[Ranking], lengths: Sequence[int]) -> Float[np.ndarray, " k"]:
    """Return the share of known targets whose user is in the top k, ties at random."""
    shares = []
    for run in runs:
        known = run.target_user < run.known_count
        scores = run.scores[known]
        true_scores = scores[np.arange(len(scores)), run.known_columns[run.target_user[known]]][
            :, None
        ]
        better, tied = (scores > true_scores).sum(1), (scores == true_scores).sum(1)
        hits = (np.array(lengths)[:, None] - better) / tied  # (lengths, targets)
        shares.append(hits.clip(0, 1).mean(1))
    means: Float[np.ndarray, " k"] = np.mean(shares, axis=0)
    return means


def identification_curve(
    runs: Sequence[Ranking], percents: Sequence[float]
) -> Float[np.ndarray, " rates"] | None:
    """Return the share of known targets identified at each percentage of false positives.

    None if no unknown users took part.
    """
    open_sets = [split for run in runs if (split := split_known_and_unknown(run)) is not None]
    if not open_sets:
        return None
    return np.array(
        [
            float(
                np.mean([detection_identification_rate(split, percent) for split in open_sets])
            )
            for percent in percents
        ]
    )
