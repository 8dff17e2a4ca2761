"""Holds ours against its rivals, row by row, and says where it reaches the bar."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from _label_shares.grid import OURS, RECIPES, VIEWS, Cell, Extent, Setting
from _label_shares.store import Measured, Store, Told
from overheard.core.seeds import Seed
from overheard.statistics.estimate import Estimate, estimate

DRAWS = Seed(0).child("bootstrap")

TWO_BEST_KNOWN = ("decaf", "whispers")

EVERYWHERE = "all"


@dataclass(frozen=True, slots=True)
class Bar:
    """What ours is to reach with so many auxiliary examples a class.

    Args:
        ratio: of its mean L1 to that of the best of the rivals below, at most.
        rivals: the best of whom counts; None = all, of whom each is to be beaten.

    """

    ratio: float
    rivals: tuple[str, ...] | None = None


BARS = {1000: Bar(1 / 4, TWO_BEST_KNOWN), 100: Bar(1 / 2, TWO_BEST_KNOWN), 20: Bar(1.0)}


@dataclass(frozen=True, slots=True)
class Row:
    """One training, amount of auxiliary data and choice of rounds.

    Args:
        where: the data set and alpha, or `EVERYWHERE` for the mean over all of them.
        recipe: of `grid.RECIPES`.
        auxiliary: examples a class.
        view: of `grid.VIEWS`.
        federations: how many were measured by every attack; only these count.
        blind: mean L1 of claiming all labels alike.
        mean_l1: by attack.
        limit: mean L1 of ours given the clients' own pool, over the federations that have it.
        coverage: mean part of the shares inside our intervals, which are to hold 0.9.
        width: mean width of our intervals.
        best: the rival that the bar is about.
        ratio: our mean L1 by that rival's.
        bar: the largest ratio that is good enough.
        is_reached: whether it is.

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
    best: str
    ratio: float
    bar: float
    is_reached: bool


@final
@dataclass(frozen=True, slots=True)
class Found:
    """All that was measured of an extent.

    Args:
        extent: what was asked for.
        of: each cell that was measured.
        attacks: names, in the order of the columns.

    """

    extent: Extent
    of: Mapping[Cell, Measured]
    attacks: tuple[str, ...]

    def rows(self) -> tuple[Row, ...]:
        """Over all data sets and alphas first, then for each of them."""
        settings = self.extent.settings()
        places = dict.fromkeys(map(_where, settings))
        of_place = [[one for one in settings if _where(one) == place] for place in places]
        found = [self._row(EVERYWHERE, settings, *kind) for kind in self._kinds()]
        for place, own in zip(places, of_place, strict=True):
            found += [self._row(place, own, *kind) for kind in self._kinds()]
        return tuple(row for row in found if row is not None)

    def seconds(self) -> dict[str, dict[str, float]]:
        """Median CPU seconds of a cell, by attack and by recipe and rounds."""
        spent: dict[str, dict[str, list[float]]] = {}
        for cell, measured in self.of.items():
            if cell.auxiliary is not None:
                kinds = spent.setdefault(cell.attack, {})
                kinds.setdefault(f"{cell.setting.recipe}, {cell.view}", []).append(
                    measured.seconds
                )
        return {
            attack: {kind: float(np.median(many)) for kind, many in kinds.items()}
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
        own = [one for one in settings if one.recipe == recipe]
        cells = {
            attack: [Cell(one, auxiliary, view, attack) for one in own]
            for attack in self.attacks
        }
        whole = [
            place
            for place in range(len(own))
            if all(cells[attack][place] in self.of for attack in self.attacks)
        ]
        if not whole:
            return None
        mean_l1 = {
            attack: self._mean([cells[attack][place] for place in whole], _l1)
            for attack in self.attacks
        }
        limits = [Cell(one, None, view, OURS) for one in own]
        ours = [cells[OURS][place] for place in whole]
        bar = BARS[auxiliary]
        rivals = bar.rivals or tuple(name for name in self.attacks if name != OURS)
        best = min(rivals, key=lambda name: mean_l1[name].mean)
        ratio = mean_l1[OURS].mean / mean_l1[best].mean
        return Row(
            where,
            recipe,
            auxiliary,
            view,
            len(whole),
            self._mean(ours, _blind).mean,
            mean_l1,
            self._mean_if_any([one for one in limits if one in self.of], _l1),
            self._plain_mean(told.coverage for told in self._told(ours)),
            self._plain_mean(told.width for told in self._told(ours)),
            best,
            ratio,
            bar.ratio,
            ratio <= bar.ratio if bar.rivals else ratio < bar.ratio,
        )

    def _told(self, cells: Iterable[Cell]) -> list[Told]:
        return [told for cell in cells for told in self.of[cell].told]

    def _mean(self, cells: Sequence[Cell], figure: Callable[[Told], float]) -> Estimate:
        """Over clients, with an interval that draws seeds and then clients."""
        values = np.array([figure(told) for told in self._told(cells)])
        seeds = np.array([cell.setting.seed for cell in cells for _ in self.of[cell].told])
        return estimate(values, seeds, DRAWS)

    def _mean_if_any(
        self, cells: Sequence[Cell], figure: Callable[[Told], float]
    ) -> Estimate | None:
        return self._mean(cells, figure) if cells else None

    def _plain_mean(self, figures: Iterable[float | None]) -> float | None:
        there = [figure for figure in figures if figure is not None]
        return float(np.mean(there)) if there else None


def found_in(extent: Extent, store: Store) -> Found:
    """Read whatever of the extent was measured.

    Raises:
        OutputError: if a file is damaged.

    """
    cells = [
        cell for setting in extent.settings() for cell in extent.cells(setting, store.attacks)
    ]
    loaded = {cell: store.load(cell) for cell in cells}
    measured = {cell: one for cell, one in loaded.items() if one is not None}
    return Found(extent, measured, tuple(store.attacks))


def _where(setting: Setting) -> str:
    return f"{setting.source} {setting.alpha:g}"


def _l1(told: Told) -> float:
    return told.l1


def _blind(told: Told) -> float:
    return told.blind
