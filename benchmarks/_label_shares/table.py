"""Compare Overheard's attack with the best of its rivals, row by row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import final

import numpy as np

from _label_shares.grid import (
    CLEAN,
    OURS,
    RECIPES,
    VIEWS,
    WRONG_ASSUMPTIONS,
    Cell,
    Extent,
    Setting,
)
from _label_shares.store import CellResult, ClientResult, Store
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean

EVERYWHERE = "all"


@dataclass(frozen=True, slots=True)
class Row:
    """Results for one training recipe, amount of auxiliary data and view.

    Args:
        where: data set and alpha, or `EVERYWHERE` for the mean over all of them.
        recipe: key of `grid.RECIPES`.
        auxiliary: examples per class.
        view: key of `grid.VIEWS`.
        federations: number of federations measured with every attack; only these count.
        blind: mean L1 of claiming even shares.
        mean_l1: mean L1 by attack.
        limit: mean L1 of Overheard's attack with the clients' own examples as auxiliary data,
            over the federations that have it.
        coverage: mean coverage of its intervals, whose level is 0.9.
        width: mean width of its intervals.
        doubted: share of its clients whose intervals it says cannot be trusted.
        best: the best of all rivals.
        ratio: its mean L1 divided by the best rival's.
        leader: the attack with the smallest mean L1.

    """

    where: str
    recipe: str
    auxiliary: int
    view: str
    federations: int
    blind: float
    mean_l1: Mapping[str, Estimate]
    limit: Estimate | None
    coverage: float | None
    width: float | None
    doubted: float | None
    best: str
    ratio: float
    leader: str


@dataclass(frozen=True, slots=True)
class TrustRow:
    """Coverage and doubts of our intervals in one condition.

    Args:
        trial: `CLEAN`, or which assumption of the attacker is wrong.
        recipe: key of `grid.RECIPES`.
        auxiliary: examples per class.
        view: key of `grid.VIEWS`.
        coverages: mean coverage of each run.
        doubted: share of the claims of each run that the attack doubts.

    """

    trial: str
    recipe: str
    auxiliary: int
    view: str
    coverages: tuple[float, ...]
    doubted: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class Results:
    """All results of an extent.

    Args:
        extent: the requested extent.
        of: result of each measured cell.
        attacks: names in the order of the columns.

    """

    extent: Extent
    of: Mapping[Cell, CellResult]
    attacks: tuple[str, ...]

    def rows(self) -> tuple[Row, ...]:
        """Return the rows over all data sets and alphas, then those for each."""
        settings = self.extent.settings()
        rows = [self._row(EVERYWHERE, settings, *kind) for kind in self._kinds()]
        for where in dict.fromkeys(map(_where, settings)):
            own = [setting for setting in settings if _where(setting) == where]
            rows += [self._row(where, own, *kind) for kind in self._kinds()]
        return tuple(row for row in rows if row is not None)

    def seconds(self) -> dict[str, dict[str, float]]:
        """Return the median CPU seconds of a cell, by attack, then by recipe and view."""
        spent: dict[str, dict[str, list[float]]] = {}
        for cell, result in self.of.items():
            if cell.auxiliary is not None and cell.trial == CLEAN:
                kinds = spent.setdefault(cell.attack, {})
                kinds.setdefault(f"{cell.setting.recipe}, {cell.view}", []).append(
                    result.seconds
                )
        return {
            attack: {kind: float(np.median(values)) for kind, values in kinds.items()}
            for attack, kinds in spent.items()
        }

    def _kinds(self) -> list[tuple[str, int, str]]:
        return [
            (recipe, auxiliary, view)
            for auxiliary in self.extent.auxiliaries
            for recipe in RECIPES
            for view in VIEWS
        ]

    def _row(
        self, where: str, settings: Sequence[Setting], recipe: str, auxiliary: int, view: str
    ) -> Row | None:
        own = [setting for setting in settings if setting.recipe == recipe]
        cells = {
            attack: [Cell(setting, auxiliary, view, attack) for setting in own]
            for attack in self.attacks
        }
        complete = [
            index
            for index in range(len(own))
            if all(cells[attack][index] in self.of for attack in self.attacks)
        ]
        if not complete:
            return None
        mean_l1 = {
            attack: self._mean([cells[attack][index] for index in complete], _l1)
            for attack in self.attacks
        }
        limits = [Cell(setting, None, view, OURS) for setting in own]
        ours = [cells[OURS][index] for index in complete]
        rivals = [name for name in self.attacks if name != OURS]
        best = min(rivals, key=lambda name: mean_l1[name].mean)
        return Row(
            where,
            recipe,
            auxiliary,
            view,
            len(complete),
            self._mean(ours, _blind).mean,
            mean_l1,
            self._mean_if_any([cell for cell in limits if cell in self.of], _l1),
            self._plain_mean(client.coverage for client in self._clients(ours)),
            self._plain_mean(client.width for client in self._clients(ours)),
            self._plain_mean(client.doubted for client in self._clients(ours)),
            best,
            mean_l1[OURS].mean / mean_l1[best].mean,
            min(mean_l1, key=lambda name: mean_l1[name].mean),
        )

    def trust_rows(self) -> tuple["TrustRow", ...]:
        """Return coverage and doubts of our intervals, by trial, recipe and auxiliary data."""
        rows = []
        for trial in (CLEAN, *WRONG_ASSUMPTIONS):
            for recipe, auxiliary, view in self._kinds():
                told = [
                    result.told
                    for cell, result in self.of.items()
                    if (cell.trial, cell.attack, cell.auxiliary, cell.view)
                    == (trial, OURS, auxiliary, view)
                    and cell.setting.recipe == recipe
                ]
                coverages = tuple(fmean(one.coverage or 0 for one in run) for run in told)
                doubted = tuple(fmean(one.doubted or 0 for one in run) for run in told)
                if told:
                    rows.append(TrustRow(trial, recipe, auxiliary, view, coverages, doubted))
        return tuple(rows)

    def _clients(self, cells: Iterable[Cell]) -> list[ClientResult]:
        return [client for cell in cells for client in self.of[cell].told]

    def _mean(self, cells: Sequence[Cell], score: Callable[[ClientResult], float]) -> Estimate:
        """Average over clients, with the interval of `estimate_mean`."""
        values = np.array([score(client) for client in self._clients(cells)])
        seeds = np.array([cell.setting.seed for cell in cells for _ in self.of[cell].told])
        return estimate_mean(values, seeds)

    def _mean_if_any(
        self, cells: Sequence[Cell], score: Callable[[ClientResult], float]
    ) -> Estimate | None:
        return self._mean(cells, score) if cells else None

    def _plain_mean(self, values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None


def load_results(extent: Extent, store: Store) -> Results:
    """Load all results of the extent.

    Raises:
        OutputError: if a file is damaged.

    """
    cells = [
        cell for setting in extent.settings() for cell in extent.cells(setting, store.attacks)
    ]
    loaded = {cell: store.load(cell) for cell in cells}
    measured = {cell: result for cell, result in loaded.items() if result is not None}
    return Results(extent, measured, tuple(store.attacks))


def _where(setting: Setting) -> str:
    return f"{setting.source} {setting.alpha:g}"


def _l1(client: ClientResult) -> float:
    return client.l1


def _blind(client: ClientResult) -> float:
    return client.blind
