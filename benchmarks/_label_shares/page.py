"""Writes the table down: for people as Markdown, for scripts as JSON."""

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from _label_shares.grid import OURS, Scale
from _label_shares.table import BARS, EVERYWHERE, Found, Row
from overheard.core.attack import Attack
from overheard.questions.label_shares.claim import LabelShares
from overheard.statistics.estimate import Estimate


@dataclass(frozen=True)
class Figures:
    """All of the table, for scripts."""

    scale: Scale
    rows: tuple[Row, ...]
    seconds: dict[str, dict[str, float]]


def figures_json(scale: Scale, found: Found, rows: tuple[Row, ...]) -> str:
    """Every number of the table."""
    figures = Figures(scale, rows, found.seconds())
    return TypeAdapter(Figures).dump_json(figures, indent=1).decode()


def markdown(
    scale: Scale,
    attacks: Mapping[str, Attack[LabelShares]],
    found: Found,
    rows: Sequence[Row],
) -> str:
    """The table over all data sets and alphas, counts and coverage; then each by itself."""
    whole = [row for row in rows if row.where == EVERYWHERE]
    single = [row for row in rows if row.where != EVERYWHERE]
    parts = [
        "# Label shares: mean L1 of every attack on the same transcripts",
        f"{scale.clients} clients of {scale.examples} examples; {scale.virtual} virtual "
        f"clients; `limit` is ours given the clients' own pool and {scale.virtual_at_limit}; "
        "`blind` claims all labels alike. In brackets 95 % bootstrap intervals over seeds and "
        "clients." + ("" if "ppa" in attacks else " PPA was not measured (--with-ppa)."),
        "\n".join(f"- {name}: `{attack!r}`" for name, attack in attacks.items()),
        "## Over all data sets and alphas",
        _table(whole, tuple(attacks), with_intervals=True),
        *_counts(whole, single),
        *_coverage(single),
        "## By data set and alpha",
        _table(single, tuple(attacks), with_intervals=False),
        "## Median CPU seconds",
        "Of a cell: one attack, one amount of auxiliary data, one choice of rounds. Virtual "
        "clients count for whoever needed them first.",
        _times(found.seconds()),
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
        cells += [_told(row.mean_l1[attack], with_intervals) for attack in attacks]
        cells.append("–" if row.limit is None else _told(row.limit, with_intervals))
        cells += [row.best, f"{row.ratio:.2f}", _bar(row), "yes" if row.is_reached else "NO"]
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _told(figure: Estimate, with_interval: bool) -> str:
    if not with_interval or figure.low is None:
        return f"{figure.mean:.3f}"
    return f"{figure.mean:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def _bar(row: Row) -> str:
    return f"{'<=' if BARS[row.auxiliary].rivals else '<'} {row.bar:g}"


def _counts(whole: Sequence[Row], single: Sequence[Row]) -> list[str]:
    """How often the bar is reached, over all and with each amount of auxiliary data."""
    lines = []
    for what, rows in (("rows over all data", whole), ("rows by data set and alpha", single)):
        parts = [f"{_reached(rows)} of all {what}"]
        for auxiliary in BARS:
            own = [row for row in rows if row.auxiliary == auxiliary]
            if own:
                parts.append(f"{_reached(own)} with {auxiliary} a class")
        lines.append(f"The bar is reached in {'; '.join(parts)}.")
    return lines


def _reached(rows: Sequence[Row]) -> str:
    return f"{sum(row.is_reached for row in rows)}/{len(rows)}"


def _coverage(single: Sequence[Row]) -> list[str]:
    lines = []
    for auxiliary in BARS:
        own = [row for row in single if row.auxiliary == auxiliary]
        # A mean of means, each of them over as many clients as it has runs.
        runs = sum(row.federations for row in own if row.coverage is not None)
        if runs:
            covered = sum(row.federations * (row.coverage or 0) for row in own) / runs
            width = sum(row.federations * (row.width or 0) for row in own) / runs
            lines.append(
                f"With {auxiliary} auxiliary examples a class the intervals of {OURS} hold "
                f"{covered:.3f} of the true shares (0.9 is said), {width:.3f} wide on average."
            )
    return lines


def _times(seconds: dict[str, dict[str, float]]) -> str:
    kinds = list(dict.fromkeys(kind for of in seconds.values() for kind in of))
    lines = [_line(["attack", *kinds]), _line(["---"] * (len(kinds) + 1))]
    for attack, of in seconds.items():
        told = [f"{of[kind]:.1f}" if kind in of else "–" for kind in kinds]
        lines.append(_line([attack, *told]))
    return "\n".join(lines)
