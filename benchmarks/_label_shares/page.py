"""The table of results as Markdown and as JSON."""

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from _label_shares.grid import OURS, Scale
from _label_shares.table import BARS, EVERYWHERE, Results, Row
from overheard.core.attack import Attack
from overheard.questions.label_shares.claim import LabelShares
from overheard.statistics.estimate import Estimate


@dataclass(frozen=True)
class Figures:
    """All values of the table, for scripts."""

    scale: Scale
    rows: tuple[Row, ...]
    seconds: dict[str, dict[str, float]]


def figures_json(scale: Scale, results: Results, rows: tuple[Row, ...]) -> str:
    """Return all values of the table as JSON."""
    figures = Figures(scale, rows, results.seconds())
    return TypeAdapter(Figures).dump_json(figures, indent=1).decode()


def markdown(
    scale: Scale,
    attacks: Mapping[str, Attack[LabelShares]],
    results: Results,
    rows: Sequence[Row],
) -> str:
    """Return the overall table, counts and coverage, and the table by data set and alpha."""
    overall = [row for row in rows if row.where == EVERYWHERE]
    single = [row for row in rows if row.where != EVERYWHERE]
    parts = [
        "# Label shares: mean L1 of every attack on the same transcripts",
        f"{scale.clients} clients of {scale.examples} examples; {scale.virtual} virtual "
        f"clients. `limit` is Overheard's attack with the clients' own examples as auxiliary "
        f"data and {scale.virtual_at_limit} virtual clients. `blind` claims even shares. "
        "Brackets have 95 % intervals over seeds, or over the clients of few seeds."
        + ("" if "ppa" in attacks else " PPA was not measured (--with-ppa)."),
        "\n".join(f"- {name}: `{attack!r}`" for name, attack in attacks.items()),
        "## Over all data sets and alphas",
        _table(overall, tuple(attacks), with_intervals=True),
        *_counts(overall, single),
        *_coverage(single),
        "## By data set and alpha",
        _table(single, tuple(attacks), with_intervals=False),
        "## Median CPU seconds",
        "Per cell: one attack, one amount of auxiliary data, one view. Virtual clients count "
        "for the first cell that uses them.",
        _times(results.seconds()),
    ]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Row], attacks: Sequence[str], *, with_intervals: bool) -> str:
    head = ["data", "training", "auxiliary", "rounds", "runs", "blind"]
    last = ["limit", "best of", "ratio", "bar", "reached"]
    titles = [*head, *attacks, *last]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for row in rows:
        cells = [row.where, row.recipe, f"{row.auxiliary}", row.view, f"{row.federations}"]
        cells.append(f"{row.blind:.3f}")
        cells += [_format(row.mean_l1[attack], with_intervals) for attack in attacks]
        cells.append("–" if row.limit is None else _format(row.limit, with_intervals))
        cells += [row.best, f"{row.ratio:.2f}", _bar(row), "yes" if row.is_reached else "NO"]
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _format(value: Estimate, with_interval: bool) -> str:
    if not with_interval or value.low is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _bar(row: Row) -> str:
    return f"{'<=' if BARS[row.auxiliary].rivals else '<'} {row.bar:g}"


def _counts(overall: Sequence[Row], single: Sequence[Row]) -> list[str]:
    """Count how often the bar is reached, in total and by amount of auxiliary data."""
    lines = []
    for what, rows in (("rows over all data", overall), ("rows by data set and alpha", single)):
        parts = [f"{_reached(rows)} of all {what}"]
        for auxiliary in BARS:
            own = [row for row in rows if row.auxiliary == auxiliary]
            if own:
                parts.append(f"{_reached(own)} with {auxiliary} per class")
        lines.append(f"The bar is reached in {'; '.join(parts)}.")
    return lines


def _reached(rows: Sequence[Row]) -> str:
    return f"{sum(row.is_reached for row in rows)}/{len(rows)}"


def _coverage(single: Sequence[Row]) -> list[str]:
    lines = []
    for auxiliary in BARS:
        own = [row for row in single if row.auxiliary == auxiliary]
        # A mean of row means, weighted by runs, which have equal numbers of clients.
        runs = sum(row.federations for row in own if row.coverage is not None)
        if runs:
            covered = sum(row.federations * (row.coverage or 0) for row in own) / runs
            width = sum(row.federations * (row.width or 0) for row in own) / runs
            lines.append(
                f"With {auxiliary} auxiliary examples per class, the intervals of {OURS} "
                f"contain {covered:.3f} of the true shares (level 0.9); their mean width is "
                f"{width:.3f}."
            )
    return lines


def _times(seconds: dict[str, dict[str, float]]) -> str:
    kinds = list(dict.fromkeys(kind for by_kind in seconds.values() for kind in by_kind))
    lines = [_line(["attack", *kinds]), _line(["---"] * (len(kinds) + 1))]
    for attack, by_kind in seconds.items():
        cells = [f"{by_kind[kind]:.1f}" if kind in by_kind else "–" for kind in kinds]
        lines.append(_line([attack, *cells]))
    return "\n".join(lines)
