"""Figures of re-identification: pairs, cumulative match curves, and precision by user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from overheard.drawing.line_charts import Axis, ChartLine, histogram_chart, lines_chart
from overheard.drawing.pair_plates import (
    MOST_ATTACKS,
    NOTE,
    RATES,
    TOLD_RATES,
    MoreColumns,
    PairCurve,
    curve_names,
    pairs_plate,
    percent_cells,
    plate_title,
)
from overheard.drawing.plates import Panel, Plate
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.questions.identity.statistics.curves import identified_at, named_within
from overheard.questions.identity.statistics.ranking import Ranking, by_user, matches, rankings

LENGTHS = 50
"""The longest list of guesses that is drawn."""

TOLD_LENGTHS = (1, 5, 10)

_TOLD_STRANGERS = [100 * rate for rate in TOLD_RATES[1:]]


@final
@dataclass(frozen=True, slots=True)
class _Drawn:
    """One attack with its rankings of all targets, one ranking per run."""

    curve: PairCurve
    ranked: tuple[Ranking, ...]

    @property
    def precisions(self) -> Float[np.ndarray, " users"]:
        return np.array(list(by_user(self.ranked).values()))


def identity_plates(arms: Sequence[ArmResult]) -> tuple[Plate, ...]:
    """Draw a figure for each group of observers, arm by arm."""
    return tuple(
        _plate(exposure, attacks)
        for arm in arms
        for exposure in arm.threat_results
        if (attacks := _drawn(exposure))
    )


def _drawn(exposure: ThreatResult) -> list[_Drawn]:
    """Return the best attacks with both true and false pairs."""
    attacks = []
    for case in exposure.attack_results:
        ranked = rankings(finding for finding in case.findings if not finding.cell.is_control)
        pairs = tuple(run for run in map(matches, ranked) if run.has_both)
        if pairs:
            attacks.append(_Drawn(PairCurve(case.label, pairs), ranked))
    return attacks[:MOST_ATTACKS]


def _plate(exposure: ThreatResult, attacks: Sequence[_Drawn]) -> Plate:
    curves, title = [attack.curve for attack in attacks], plate_title(exposure)
    best = curve_names(curves)[0]
    panels = (
        _lists(attacks, title),
        _histogram(attacks[0], best, title),
        *_strangers(attacks, title),
    )
    note = f"{NOTE} The histogram shows only the best attack."
    return pairs_plate(exposure, curves, note, panels, _columns(attacks))


def _lists(attacks: Sequence[_Drawn], title: str) -> Panel:
    users = len(attacks[0].ranked[0].users)
    lengths = range(1, min(users, LENGTHS) + 1)
    x = [float(length) for length in lengths]
    lines = [
        ChartLine(place, x, (100 * named_within(attack.ranked, lengths)).tolist())
        for place, attack in enumerate(attacks)
    ]
    blind = ChartLine(0, x, [100 * length / users for length in lengths])
    across = Axis("number of guesses", 1.0, max(2.0, x[-1]))
    up = Axis("true user among them, %", 0.0, 103.0)
    label = f"True user among the first guesses: {title}"
    return Panel(
        "True user among the first guesses", lines_chart(lines, blind, across, up, label)
    )


def _histogram(best: _Drawn, name: str, title: str) -> Panel:
    chance = float(np.concatenate([run.chances() for run in best.ranked]).mean())
    across = Axis("average precision, %", 0.0, 100.0)
    chart = histogram_chart(
        (100 * best.precisions).tolist(), 100 * chance, across, f"Average precision: {title}"
    )
    return Panel(f"Average precision by user: {make_printable(name)}", chart)


def _strangers(attacks: Sequence[_Drawn], title: str) -> list[Panel]:
    percents = (100 * RATES[::2]).tolist()
    lines = [
        ChartLine(place, percents, (100 * rates).tolist())
        for place, attack in enumerate(attacks)
        if (rates := identified_at(attack.ranked, percents)) is not None
    ]
    if not lines:
        return []
    up = Axis("known users identified, %", 0.0, 103.0)
    across = Axis("false alarms on unknown users, %", 0.0, 100.0)
    users = len(attacks[0].ranked[0].users)
    blind = ChartLine(0, percents, [rate / users for rate in percents])
    label = f"Known users identified among unknown users: {title}"
    return [Panel("With unknown users", lines_chart(lines, blind, across, up, label))]


def _columns(attacks: Sequence[_Drawn]) -> MoreColumns:
    return MoreColumns(
        (
            *(f"True user in the top {length}" for length in TOLD_LENGTHS),
            *(
                "Average precision, 10th percentile",
                "Average precision, median",
                "Average precision, 90th percentile",
            ),
            *(f"Identified at {percent:g} % false alarms" for percent in _TOLD_STRANGERS),
        ),
        tuple(map(_line, attacks)),
    )


def _line(attack: _Drawn) -> tuple[str, ...]:
    rates = identified_at(attack.ranked, _TOLD_STRANGERS)
    return (
        *percent_cells(named_within(attack.ranked, TOLD_LENGTHS)),
        *percent_cells(np.quantile(attack.precisions, (0.1, 0.5, 0.9))),
        *((NO_NUMBER,) * len(_TOLD_STRANGERS) if rates is None else percent_cells(rates)),
    )
