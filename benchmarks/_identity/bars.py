"""Bars: what a figure is to reach, and whether it does."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from _identity.measured import Measured, Place
from overheard.plans.plan import UNDEFENDED
from overheard.statistics.estimate import Estimate

PRECISION = "mean_average_precision"

UNKNOWN = Estimate(float("nan"), None, None)
"""Of a figure that was not measured, which reaches nothing."""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure beside its bar.

    Args:
        figure: in words.
        value: as measured, with its interval where it has one.
        bar: in words.
        is_reached: whether it is.

    """

    figure: str
    value: Estimate
    bar: str
    is_reached: bool


class Bar(ABC):
    """What one figure of a case is to reach."""

    @abstractmethod
    def check(self, measured: Measured) -> Check:
        """Hold what was measured against it."""


@final
@dataclass(frozen=True, slots=True)
class AtLeast(Bar):
    """A score is so high.

    Args:
        about: the figure in words.
        place: whose.
        score: which.
        least: how high.
        by: whether its mean is, or the lower end of its interval above it.

    """

    about: str
    place: Place
    score: str
    least: float
    by: Literal["mean", "low"] = "mean"

    def check(self, measured: Measured) -> Check:
        """Look at the row."""
        row = measured.row(self.place, self.score)
        value = UNKNOWN if row is None else row.value
        if self.by == "low":
            reached = value.low is not None and value.low > self.least
            return Check(self.about, value, f"lower end > {self.least:g}", reached)
        return Check(self.about, value, f">= {self.least:g}", value.mean >= self.least)


@final
@dataclass(frozen=True, slots=True)
class InsideNull(Bar):
    """Where examples were dealt anew, an attack is within 95 % of device permutations."""

    about: str
    place: Place

    def check(self, measured: Measured) -> Check:
        """Look at the row of the control."""
        row = measured.row(self.place, "control_excess")
        if row is None:
            return Check(self.about, UNKNOWN, "in the null", False)
        low, high = (row.references[f"null {end} %"] for end in ("2.5", "97.5"))
        inside = low <= row.value.mean <= high
        return Check(self.about, row.value, f"in [{low:.3f}, {high:.3f}]", inside)


@final
@dataclass(frozen=True, slots=True)
class NotBelow(Bar):
    """One attack's average precision is at least another's, user by user."""

    about: str
    place: Place
    base: Place

    def check(self, measured: Measured) -> Check:
        """Take the paired gain."""
        value = measured.gain(self.place, self.base) or UNKNOWN
        return Check(self.about, value, ">= 0", value.mean >= 0)


@final
@dataclass(frozen=True, slots=True)
class More(Bar):
    """A score of one threat is above that of another, such as of pseudonyms that last."""

    about: str
    place: Place
    base: Place
    score: str

    def check(self, measured: Measured) -> Check:
        """Compare the means."""
        row, base = (measured.row(one, self.score) for one in (self.place, self.base))
        if row is None or base is None:
            return Check(self.about, UNKNOWN, "more", False)
        reached = row.value.mean > base.value.mean or row.value.mean == 1
        return Check(self.about, row.value, f"> {base.value.mean:.3f}", reached)


@final
@dataclass(frozen=True, slots=True)
class Lowered(Bar):
    """Behind some arm average precision falls by so much, and the model stays worth so much.

    Args:
        about: in words.
        place: the attack.
        arms: names of those that may do it; the one with the largest fall of those with the
            utility is told.
        least: the share of average precision that is gone.
        utility: that is kept, of the accuracy without defenses.

    """

    about: str
    place: Place
    arms: Sequence[str]
    least: float
    utility: float

    def check(self, measured: Measured) -> Check:
        """Look for the best arm."""
        kept = [arm for arm in self.arms if measured.utility(arm) >= self.utility]
        falls = {arm: fall(measured, self.place.behind(arm)) for arm in kept}
        told = {arm: value for arm, value in falls.items() if value is not None}
        bar = f">= {self.least:g} at utility >= {self.utility:g}"
        if not told:
            return Check(self.about, UNKNOWN, bar, False)
        best = max(told, key=lambda arm: told[arm])
        value = Estimate(told[best], None, None)
        return Check(f"{self.about}: {best}", value, bar, told[best] >= self.least)


def fall(measured: Measured, place: Place) -> float | None:
    """The share of an attack's average precision that an arm takes away, as papers tell it."""
    row = measured.row(place, PRECISION)
    bare = measured.row(place.behind(UNDEFENDED), PRECISION)
    if row is None or bare is None:
        return None
    return 1 - row.value.mean / bare.value.mean
