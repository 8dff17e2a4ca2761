"""Figures of how many listed words are correct, by the length of the list."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.drawing.pair_figures import CURVES_NOTE, MAX_ATTACKS, figure_title
from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import NO_NUMBER, format_number
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult

REPORTED_LENGTHS = (1, 10, 30, 100)
"""Lengths of the list in the table."""

GUESSED = "rare_words_named"


def word_figures(arms: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Draw a figure for each group of observers, arm by arm."""
    return tuple(
        _threat_figure(threat_result, attacks)
        for arm in arms
        for threat_result in arm.threat_results
        if (attacks := _attacks_with_lists(threat_result))
    )


def share_correct(result: AttackResult) -> Float[np.ndarray, " lengths"]:
    """Return the share of used words among the first 1, 2, ... listed ones, mean over claims.

    Claims that list fewer words than another are continued with their last share.
    """
    lists = [
        np.array(one.true_numbers)
        for one in result.findings
        if one.claimed.candidates and one.true_numbers
    ]
    longest = max((len(one) for one in lists), default=0)
    shares = [np.cumsum(one) / np.arange(1, len(one) + 1) for one in lists]
    padded = [np.pad(one, (0, longest - len(one)), mode="edge") for one in shares]
    means: Float[np.ndarray, " lengths"] = np.mean(padded, axis=0) if padded else np.zeros(0)
    return means


def _attacks_with_lists(threat_result: ThreatResult) -> list[AttackResult]:
    found = [one for one in threat_result.attack_results if len(share_correct(one))]
    return found[:MAX_ATTACKS]


def _threat_figure(
    threat_result: ThreatResult, attacks: Sequence[AttackResult]
) -> ReportFigure:
    where = figure_title(threat_result)
    names = shorten_attack_names([one.label for one in attacks])
    short = [names[one.label] for one in attacks]
    shares = [share_correct(one) for one in attacks]
    lines = [
        ChartLine(
            place, np.arange(1.0, len(one) + 1).tolist(), (100 * one).tolist(), short[place]
        )
        for place, one in enumerate(shares)
    ]
    longest = max(len(one) for one in shares)
    row = attacks[0].rows_by_score.get(GUESSED)
    guess = None if row is None else row.blind
    blind = (
        None
        if guess is None
        else ChartLine(0, (1.0, float(longest)), (100 * guess, 100 * guess))
    )
    chart = lines_chart(
        lines,
        blind,
        Axis("words listed", 1.0, max(2.0, float(longest))),
        Axis("used by the client, %", 0.0, 103.0),
        f"Used words among the first listed: {where}",
    )
    return ReportFigure(
        where,
        f"{CURVES_NOTE} Dashes: the best guess, among its first 100 rare words or as many as "
        "the client used.",
        legend_chart(short, guess is not None, f"Legend: {where}"),
        (Panel("Used words among the first rare words listed", chart),),
        _table(attacks, shares, where),
        True,
    )


def _table(
    attacks: Sequence[AttackResult], shares: Sequence[Float[np.ndarray, " lengths"]], where: str
) -> ReportTable:
    return ReportTable(
        f"Used words among the first listed, in %: {where}",
        ("Attack", *(f"First {length}" for length in REPORTED_LENGTHS)),
        tuple(
            (
                make_printable(attack.label),
                *(
                    format_number(100 * float(one[length - 1]))
                    if length <= len(one)
                    else NO_NUMBER
                    for length in REPORTED_LENGTHS
                ),
            )
            for attack, one in zip(attacks, shares, strict=True)
        ),
        1,
    )
