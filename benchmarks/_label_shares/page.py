"""The table of results as Markdown and as JSON."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from _label_shares.grid import OURS, Scale
from _label_shares.table import EVERYWHERE, Results, Row, TrustRow
from overheard.core.attack import Attack
from overheard.questions.label_shares.claim import LabelShares
from overheard.statistics.estimate import Estimate


@dataclass(frozen=True)
class Figures:
    """All values of the table, for scripts."""

    scale: Scale
    rows: tuple[Row, ...]
    trust: tuple[TrustRow, ...]
    seconds: dict[str, dict[str, float]]


def figures_json(scale: Scale, results: Results, rows: tuple[Row, ...]) -> str:
    """Return all values of the table as JSON."""
    figures = Figures(scale, rows, results.trust_rows(), results.seconds())
    return TypeAdapter(Figures).dump_json(figures, indent=1).decode()


def markdown(
    scale: Scale,
    attacks: Mapping[str, Attack[LabelShares]],
    results: Results,
    rows: Sequence[Row],
) -> str:
    """Return the overall table, counts and intervals, and the table by data set and alpha."""
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
        "## Intervals",
        *_pooled_trust(results.trust_rows()),
        _trust(results.trust_rows()),
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
    last = ["limit", "best rival", "ratio", "leads"]
    titles = [*head, *attacks, *last]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for row in rows:
        cells = [row.where, row.recipe, f"{row.auxiliary}", row.view, f"{row.federations}"]
        cells.append(f"{row.blind:.3f}")
        cells += [_format(row.mean_l1[attack], with_intervals) for attack in attacks]
        cells.append("–" if row.limit is None else _format(row.limit, with_intervals))
        cells += [row.best, f"{row.ratio:.2f}", row.leader]
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _format(value: Estimate, with_interval: bool) -> str:
    if not with_interval or value.low is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _counts(overall: Sequence[Row], single: Sequence[Row]) -> list[str]:
    """Count in how many rows Overheard's attack leads, and name the leader of each other."""
    lines = []
    for what, rows in (("rows over all data", overall), ("rows by data set and alpha", single)):
        lost = [
            f"{row.where}, {row.recipe}, {row.auxiliary}, {row.view}: {row.leader}"
            for row in rows
            if row.leader != OURS
        ]
        others = f" Others lead in: {'; '.join(lost)}." if lost else ""
        lines.append(
            f"{OURS} leads in {len(rows) - len(lost)} of {len(rows)} {what}; the ratio is to "
            f"the best of all rivals.{others}"
        )
    return lines


def _trust(rows: Sequence[TrustRow]) -> str:
    """Tabulate how often intervals contain the truth, and how often they are doubted."""
    titles = ["trial", "training", "auxiliary", "rounds", "runs", "coverage", "doubted runs"]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for row in rows:
        doubted = sum(share > 0.5 for share in row.doubted)
        lines.append(
            _line(
                [
                    row.trial,
                    row.recipe,
                    f"{row.auxiliary}",
                    row.view,
                    f"{len(row.coverages)}",
                    f"{fmean(row.coverages):.3f} ({min(row.coverages):.2f} to "
                    f"{max(row.coverages):.2f})",
                    f"{doubted}",
                ]
            )
        )
    return "\n".join(lines)


def _pooled_trust(rows: Sequence[TrustRow]) -> list[str]:
    lines = []
    for trial in dict.fromkeys(row.trial for row in rows):
        own = [row for row in rows if row.trial == trial]
        coverages = [one for row in own for one in row.coverages]
        doubted = [share > 0.5 for row in own for share in row.doubted]
        trusted = [c for c, no in zip(coverages, doubted, strict=True) if not no]
        rest = f"; of the others {fmean(trusted):.3f}" if trusted and any(doubted) else ""
        lines.append(
            f"{trial}: coverage {fmean(coverages):.3f} over {len(coverages)} runs (level 0.9); "
            f"doubted in {sum(doubted)}{rest}."
        )
    return lines


def _times(seconds: dict[str, dict[str, float]]) -> str:
    kinds = list(dict.fromkeys(kind for by_kind in seconds.values() for kind in by_kind))
    lines = [_line(["attack", *kinds]), _line(["---"] * (len(kinds) + 1))]
    for attack, by_kind in seconds.items():
        cells = [f"{by_kind[kind]:.1f}" if kind in by_kind else "–" for kind in kinds]
        lines.append(_line([attack, *cells]))
    return "\n".join(lines)
