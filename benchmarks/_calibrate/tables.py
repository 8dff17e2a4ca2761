"""The tables of the synthetic audits, and the bounds that they break."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import final

from _calibrate.cells import (
    CLIENTS,
    LEAST_COVERAGE,
    MOST_IN_A_CELL,
    MOST_TOGETHER,
    RUNS,
    AuditCell,
    null_cells,
    other_cells,
    power_cells,
    share_cells,
)
from _calibrate.intervals import FigureCell, figure_cells

POWER_BOUNDS = {0.5: 0.95, 0.2: 0.80}
"""Smallest share of "leaks", by the weight of the truth in a claim."""


@final
@dataclass(frozen=True, slots=True)
class CellResult:
    """Counts over the audits of a cell."""

    key: str
    audits: int
    counts: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        return asdict(self)

    def share(self, name: str) -> float:
        """Return the share of audits that are counted."""
        return self.counts[name] / self.audits


Results = Mapping[str, CellResult]


def markdown(results: Results) -> str:
    """Return all tables; a cell that is not measured is a dash."""
    return "\n".join(
        [
            "Small p-values in label shares where nothing leaks, in % of the audits, by\n"
            "runs x clients:\n",
            *_null_rows(results),
            "\nSmall p-values in the other questions where nothing leaks, in %, 2 attacks,\n"
            "correlation 0.5, between-run variance 0.3:\n",
            *_other_rows(results),
            f"\n{_together(results)}\n",
            '"Leaks" where claims know a part of the truth, 1 run, 4 attacks:\n',
            *_power_rows(results),
            "\nCoverage of 95 % intervals of normal figures, the worst of all correlations\n"
            "and between-run variances, in %:\n",
            *_coverage_rows(results),
            "\nCoverage of 95 % intervals of other figures, in %, by runs x clients:\n",
            *_figure_rows(results),
        ]
    )


def broken_bounds(results: Results) -> list[str]:
    """Return a sentence for each bound that is broken; cells not measured break none."""
    broken = [
        f"{cell.key}: {found.counts['small_p']} small p-values of {found.audits}"
        for cell, found in _verdicts(results, null_cells())
        if found.share("small_p") > MOST_IN_A_CELL / 2000
    ]
    audits, found_small = _sums(results)
    if found_small > MOST_TOGETHER * audits:
        broken.append(f"all cells together: {found_small} small p-values of {audits}")
    broken += [
        f"{cell.key}: {name} in {found.share(name):.1%}"
        for cell, found in _verdicts(results, power_cells())
        for name in (("small_p", "leaks") if cell.claims_gain else ("small_p",))
        if found.share(name) < POWER_BOUNDS[cell.truth]
    ]
    broken += [
        f"{cell.key}: {name} covered in {found.share(name):.1%}"
        for cell in share_cells()
        if (found := results.get(f"intervals: {cell.key}")) is not None
        for name in ("one", "best")
        if found.share(name) < LEAST_COVERAGE
    ]
    return broken


def _verdicts(
    results: Results, cells: Iterable[AuditCell]
) -> Iterator[tuple[AuditCell, CellResult]]:
    for cell in cells:
        found = results.get(f"verdicts: {cell.key}")
        if found is not None:
            yield cell, found


def _sums(results: Results) -> tuple[int, int]:
    found = [one for _, one in _verdicts(results, null_cells())]
    return sum(one.audits for one in found), sum(one.counts["small_p"] for one in found)


def _together(results: Results) -> str:
    audits, together = _sums(results)
    if not audits:
        return "No cell is measured."
    found = [one.counts["small_p"] for _, one in _verdicts(results, null_cells())]
    return (
        f"All {len(found)} cells together: {together} small p-values in {audits:,} audits, "
        f"{together / audits:.2%}; at most {max(found)} in a cell."
    )


def _null_rows(results: Results) -> Iterator[str]:
    sizes = [(runs, clients) for runs in RUNS for clients in CLIENTS]
    yield from _head(
        ["attacks", "correlation", "between runs", *(f"{r} x {c}" for r, c in sizes)]
    )
    settings = dict.fromkeys(
        (cell.attacks, cell.correlation, cell.between) for cell in share_cells()
    )
    for attacks, correlation, between in sorted(settings):
        cells = (
            AuditCell("shares", runs, clients, attacks, correlation, between)
            for runs, clients in sizes
        )
        figures = [_percent(results, f"verdicts: {cell.key}", "small_p") for cell in cells]
        yield _row([attacks, correlation, between, *figures])


def _other_rows(results: Results) -> Iterator[str]:
    sizes = [(runs, clients) for runs in RUNS for clients in CLIENTS]
    yield from _head(["claims about", *(f"{r} x {c}" for r, c in sizes)])
    by_kind: dict[str, list[str]] = {}
    for cell in other_cells():
        figure = _percent(results, f"verdicts: {cell.key}", "small_p")
        by_kind.setdefault(cell.kind, []).append(figure)
    for kind, figures in by_kind.items():
        yield _row([kind, *figures])


def _power_rows(results: Results) -> Iterator[str]:
    yield from _head(
        [
            "truth in a claim",
            "rest of it",
            "clients",
            "correlation",
            "small p-value, %",
            '"leaks", %',
        ]
    )
    for cell in power_cells():
        key = f"verdicts: {cell.key}"
        figures = [_percent(results, key, name) for name in ("small_p", "leaks")]
        yield _row([cell.truth, cell.rest, cell.clients, cell.correlation, *figures])


def _coverage_rows(results: Results) -> Iterator[str]:
    yield from _head(
        [
            "runs x clients",
            "one attack",
            "best of 1",
            "best of 4",
            "best of 12",
            "wrongly below",
        ]
    )
    for runs in RUNS:
        for clients in CLIENTS:
            of_size = [
                cell for cell in share_cells() if (cell.runs, cell.clients) == (runs, clients)
            ]
            best = [
                _worst(results, [cell for cell in of_size if cell.attacks == attacks], "best")
                for attacks in (1, 4, 12)
            ]
            one = _worst(results, of_size, "one")
            below = _worst(results, of_size, "wrongly_below", largest=True)
            yield _row([f"{runs} x {clients}", one, *best, below])


def _worst(
    results: Results, cells: Sequence[AuditCell], name: str, *, largest: bool = False
) -> str:
    shares = [
        results[key].share(name)
        for cell in cells
        if (key := f"intervals: {cell.key}") in results
    ]
    return f"{100 * (max if largest else min)(shares):.1f}" if shares else "-"


def _figure_rows(results: Results) -> Iterator[str]:
    by_figures: dict[str, list[FigureCell]] = {}
    for cell in figure_cells():
        by_figures.setdefault(cell.figures, []).append(cell)
    sizes = [f"{cell.runs} x {cell.clients}" for cell in next(iter(by_figures.values()))]
    yield from _head(["figures", *sizes])
    for figures, cells in by_figures.items():
        covered = [_percent(results, f"figures: {cell.key}", "covered") for cell in cells]
        yield _row([figures, *covered])


def _percent(results: Results, key: str, name: str) -> str:
    return f"{100 * results[key].share(name):.1f}" if key in results else "-"


def _head(names: Sequence[str]) -> Iterator[str]:
    yield _row(names)
    yield "|" + "---|" * len(names)


def _row(items: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, items))} |"
