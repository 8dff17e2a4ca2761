"""The comparison of attacks in equal views as Markdown."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import t

from _identity.comparison import ComparedAttack, Comparison
from _identity.page import format_value, make_table
from overheard.plans.plugin_field import plugin_label
from overheard.statistics.estimate import CONFIDENCE_LEVEL, Estimate

FEWEST_RUNS = 2
"""Fewer runs have no spread."""


def over_runs(values: Sequence[float]) -> Estimate:
    """Return the mean over runs with Student's 95 % interval; none for a single run.

    Values lie between -1 and 1, and so do the ends; scores above 0 may touch 1.
    """
    mean, count = float(np.mean(values)), len(values)
    if count < FEWEST_RUNS:
        return Estimate(mean, None, None)
    error = float(np.std(values, ddof=1)) / count**0.5
    margin = float(t.ppf((1 + CONFIDENCE_LEVEL) / 2, count - 1)) * error
    return Estimate(mean, max(-1.0, mean - margin), min(1.0, mean + margin))


def comparison_page(comparison: Comparison) -> str:
    """Return the table of all rows, the lead over the best rival, and all tuned settings."""
    seeds = ", ".join(map(str, comparison.seeds))
    return "\n\n".join(
        [
            f"### Equal views: {comparison.about}",
            f"Seeds {seeds}. Brackets: 95 % intervals over runs (Student), of the same users.",
            make_table(
                ("attack", "claims rest on", "settings", "average precision", "top-1"),
                map(_row, comparison.rows),
            ),
            _leads(comparison),
            "Average precision of every setting on the tuning seeds:",
            make_table(
                ("setting", "average precision"),
                [
                    (plugin_label(attack), f"{value:.3f}")
                    for attack, value in comparison.tuning.items()
                ],
            ),
        ]
    )


def lead(row: ComparedAttack, base: ComparedAttack) -> Estimate:
    """Return the mean difference of average precision, run by run."""
    return over_runs(
        [
            one.average_precision - other.average_precision
            for one, other in zip(row.precisions, base.precisions, strict=True)
        ]
    )


def _row(row: ComparedAttack) -> tuple[str, ...]:
    return (
        plugin_label(row.attack),
        row.view,
        "chosen on tuning seeds" if row.is_tuned else "as published",
        format_value(over_runs([one.average_precision for one in row.precisions])),
        format_value(over_runs([one.top1 for one in row.precisions])),
    )


def _leads(comparison: Comparison) -> str:
    rival, ours = comparison.best_rival, comparison.ours("one update")
    linked = comparison.ours("with linking and assignment")
    return (
        f"The best rival that reads updates is {plugin_label(rival.attack)}. Overheard's "
        f"attack minus this rival: {format_value(lead(ours, rival))} on one update; "
        f"{format_value(lead(linked, rival))} with linking and assignment, which the rival "
        "lacks. Overheard's attack on one update minus its attack on numbers of examples and "
        f"losses alone (`metadata`): {format_value(lead(ours, comparison.metadata))}."
    )
