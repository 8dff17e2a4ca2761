"""The figures of how well people are recognised: by pairs, by lists of names, user by user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from overheard.drawing.charts import legend_chart
from overheard.drawing.line_charts import Axis, ChartLine, histogram_chart, lines_chart
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import NO_FIGURE, digits
from overheard.findings.names import shown, told_apart
from overheard.questions.identity.scorer import IdentityScorer
from overheard.questions.identity.statistics.curves import hits_at, identified_at, named_within
from overheard.questions.identity.statistics.ranking import Ranking, by_user, matches, rankings
from overheard.questions.same_sender.scorer import SameSenderScorer
from overheard.questions.same_sender.statistics.pairs import sender_matches
from overheard.statistics.matching import Matches

ATTACKS = 6
"""Attacks drawn for one group of observers: the best."""

RATES = np.linspace(0, 1, 101)
"""Shares of false alarms at which curves are drawn."""

TOLD_RATES = (0.001, 0.01, 0.1)
"""Those at which the table tells them."""

LENGTHS = 50
"""Names on the longest list that is drawn."""

TOLD_LENGTHS = (1, 5, 10)

_FALSE_ALARMS = Axis("false alarms, %", 0.0, 100.0)


@final
@dataclass(frozen=True, slots=True)
class _Drawn:
    """One attack with what it said of all targets, run by run."""

    attack: str
    pairs: tuple[Matches, ...]
    ranked: tuple[Ranking, ...]

    @property
    def precisions(self) -> Float[np.ndarray, " users"]:
        return np.array(list(by_user(self.ranked).values()))


def identity_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """A figure for each group of observers who ask who targets are, arm by arm."""
    return tuple(
        _plate(exposure, drawn)
        for arm in every
        for exposure in arm.exposures
        if (drawn := _drawn(exposure))
    )


def _drawn(exposure: Exposure) -> list[_Drawn]:
    """The best attacks of which there are pairs of both kinds."""
    held = []
    for case in exposure.cases:
        planned = [one for one in case.findings if not one.cell.is_control]
        if exposure.question == IdentityScorer.name:
            ranked = rankings(planned)
            pairs = tuple(run for run in map(matches, ranked) if run.has_both)
        elif exposure.question == SameSenderScorer.name:
            ranked, pairs = (), sender_matches(planned)
        else:
            continue
        if pairs:
            held.append(_Drawn(case.attack, pairs, ranked))
    return held[:ATTACKS]


def _plate(exposure: Exposure, drawn: Sequence[_Drawn]) -> Plate:
    where = f"{shown(exposure.arm)} · {exposure.title}"
    names = told_apart([one.attack for one in drawn])
    left = len(exposure.cases) - len(drawn)
    note = (
        "Each line is one attack: the further up, the more is recognised. The histogram shows "
        "the best attack alone."
        if drawn[0].ranked
        else "Each line is one attack: the further up, the more is recognised."
    )
    return Plate(
        where,
        f"{note} {left} more are in the tables." if left else note,
        legend_chart([names[one.attack] for one in drawn], True, f"Legend: {where}"),
        _panels(drawn, names[drawn[0].attack], where),
        _table(drawn, where),
        True,
    )


def _panels(drawn: Sequence[_Drawn], best: str, where: str) -> tuple[Panel, ...]:
    percents = 100 * RATES
    diagonal = ChartLine(0, (0.0, 100.0), (0.0, 100.0))
    lines = [
        ChartLine(place, percents.tolist(), (100 * hits_at(one.pairs, RATES)).tolist())
        for place, one in enumerate(drawn)
    ]
    up = Axis("true pairs that pass, %", 0.0, 103.0)
    chart = lines_chart(lines, diagonal, _FALSE_ALARMS, up, f"Pairs told apart: {where}")
    panels = [Panel("Pairs told apart, by threshold", chart)]
    if drawn[0].ranked:
        panels += [_lists(drawn, where), _histogram(drawn[0], best, where)]
        panels += _strangers(drawn, where)
    return tuple(panels)


def _lists(drawn: Sequence[_Drawn], where: str) -> Panel:
    users = len(drawn[0].ranked[0].users)
    lengths = range(1, min(users, LENGTHS) + 1)
    x = [float(length) for length in lengths]
    lines = [
        ChartLine(place, x, (100 * named_within(one.ranked, lengths)).tolist())
        for place, one in enumerate(drawn)
    ]
    blind = ChartLine(0, x, [100 * length / users for length in lengths])
    across = Axis("names on the list", 1.0, max(2.0, x[-1]))
    up = Axis("true user on the list, %", 0.0, 103.0)
    chart = lines_chart(lines, blind, across, up, f"Right among the first named: {where}")
    return Panel("Right among the first so many named", chart)


def _histogram(best: _Drawn, name: str, where: str) -> Panel:
    chance = float(np.concatenate([run.chances() for run in best.ranked]).mean())
    across = Axis("average precision, %", 0.0, 100.0)
    chart = histogram_chart(
        (100 * best.precisions).tolist(), 100 * chance, across, f"Average precision: {where}"
    )
    return Panel(f"User by user: {shown(name)}", chart)


def _strangers(drawn: Sequence[_Drawn], where: str) -> list[Panel]:
    percents = (100 * RATES[::2]).tolist()
    lines = [
        ChartLine(place, percents, (100 * rates).tolist())
        for place, one in enumerate(drawn)
        if (rates := identified_at(one.ranked, percents)) is not None
    ]
    if not lines:
        return []
    up = Axis("known users named right, %", 0.0, 103.0)
    across = Axis("strangers taken for a known user, %", 0.0, 100.0)
    blind = ChartLine(0, percents, [rate / len(drawn[0].ranked[0].users) for rate in percents])
    label = f"Known users named right among strangers: {where}"
    return [Panel("With users it does not know", lines_chart(lines, blind, across, up, label))]


def _table(drawn: Sequence[_Drawn], where: str) -> Table:
    heads = ["Attack", *(f"True pairs at {100 * rate:g} % false alarms" for rate in TOLD_RATES)]
    if drawn[0].ranked:
        heads += [f"Right among {length}" for length in TOLD_LENGTHS]
        heads += ["A tenth of users below", "Half below", "A tenth above"]
        heads += [f"Right at {100 * rate:g} % strangers" for rate in TOLD_RATES[1:]]
    return Table(
        f"What the lines show, in %: {where}",
        tuple(heads),
        tuple(_line(one) for one in drawn),
        1,
    )


def _line(one: _Drawn) -> tuple[str, ...]:
    cells = _told(hits_at(one.pairs, np.array(TOLD_RATES)))
    if one.ranked:
        cells += _told(named_within(one.ranked, TOLD_LENGTHS))
        cells += _told(np.quantile(one.precisions, (0.1, 0.5, 0.9)))
        rates = identified_at(one.ranked, [100 * rate for rate in TOLD_RATES[1:]])
        cells += [NO_FIGURE] * 2 if rates is None else _told(rates)
    return (shown(one.attack), *cells)


def _told(shares: Float[np.ndarray, " figures"]) -> list[str]:
    return [digits(100 * share) for share in shares.tolist()]
