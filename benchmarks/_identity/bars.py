"""Bars: required results, and whether they are reached."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from _identity.measured import AttackedArm, CaseAudit
from overheard.plans.plan import UNDEFENDED
from overheard.statistics.estimate import Estimate

PRECISION = "mean_average_precision"

UNKNOWN = Estimate(float("nan"), None, None)
"""Value of a figure that was not measured; it reaches no bar."""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure compared with its bar.

    Args:
        figure: description of the figure.
        value: measured value, with its interval if it has one.
        bar: description of the bar.
        is_reached: whether the bar is reached.

    """

    figure: str
    value: Estimate
    bar: str
    is_reached: bool


class Bar(ABC):
    """The required result of one figure of a case."""

    @abstractmethod
    def check(self, measured: CaseAudit) -> Check:
        """Compare the results of a case with the bar."""


@final
@dataclass(frozen=True, slots=True)
class AtLeast(Bar):
    """A score is at least this high.

    Args:
        about: description of the figure.
        place: the attack.
        score: name of the score.
        least: required value.
        by: whether the mean must reach it, or the lower end of the interval exceed it.

    """

    about: str
    place: AttackedArm
    score: str
    least: float
    by: Literal["mean", "low"] = "mean"

    def check(self, measured: CaseAudit) -> Check:
        """Compare the row with the required value."""
        row = measured.row(self.place, self.score)
        value = UNKNOWN if row is None else row.value
        if self.by == "low":
            reached = value.low is not None and value.low > self.least
            return Check(self.about, value, f"lower end > {self.least:g}", reached)
        return Check(self.about, value, f">= {self.least:g}", value.mean >= self.least)


@final
@dataclass(frozen=True, slots=True)
class InsideNull(Bar):
    """The control of an attack is within 95 % of device permutations."""

    about: str
    place: AttackedArm

    def check(self, measured: CaseAudit) -> Check:
        """Compare the row of the control with the permutations."""
        row = measured.row(self.place, "control_excess")
        if row is None:
            return Check(self.about, UNKNOWN, "inside the null", False)
        low, high = (row.references[f"null {end} %"] for end in ("2.5", "97.5"))
        inside = low <= row.value.mean <= high
        return Check(self.about, row.value, f"in [{low:.3f}, {high:.3f}]", inside)


@final
@dataclass(frozen=True, slots=True)
class NotBelow(Bar):
    """One attack's average precision is at least another's, user by user."""

    about: str
    place: AttackedArm
    base: AttackedArm

    def check(self, measured: CaseAudit) -> Check:
        """Compare the paired gain with 0."""
        value = measured.gain(self.place, self.base) or UNKNOWN
        return Check(self.about, value, ">= 0", value.mean >= 0)


@final
@dataclass(frozen=True, slots=True)
class Above(Bar):
    """A score of one attack or threat is above that of another."""

    about: str
    place: AttackedArm
    base: AttackedArm
    score: str

    def check(self, measured: CaseAudit) -> Check:
        """Compare the means."""
        row, base = (measured.row(place, self.score) for place in (self.place, self.base))
        if row is None or base is None:
            return Check(self.about, UNKNOWN, "above the other", False)
        reached = row.value.mean > base.value.mean or row.value.mean == 1
        return Check(self.about, row.value, f"> {base.value.mean:.3f}", reached)


@final
@dataclass(frozen=True, slots=True)
class Lowered(Bar):
    """Some arm reduces average precision by so much at sufficient utility.

    Args:
        about: description of the figure.
        place: the attack.
        arms: names of the arms; of those with the required utility, the one with the largest
            reduction is reported.
        least: required relative reduction of average precision.
        utility: required accuracy relative to that without defenses.

    """

    about: str
    place: AttackedArm
    arms: Sequence[str]
    least: float
    utility: float

    def check(self, measured: CaseAudit) -> Check:
        """Find the arm with the largest reduction."""
        useful = [arm for arm in self.arms if measured.utility(arm) >= self.utility]
        reductions = {arm: reduction(measured, self.place.behind(arm)) for arm in useful}
        known = {arm: value for arm, value in reductions.items() if value is not None}
        bar = f">= {self.least:g} at utility >= {self.utility:g}"
        if not known:
            return Check(self.about, UNKNOWN, bar, False)
        best = max(known, key=lambda arm: known[arm])
        value = Estimate(known[best], None, None)
        return Check(f"{self.about}: {best}", value, bar, known[best] >= self.least)


def reduction(measured: CaseAudit, place: AttackedArm) -> float | None:
    """Return the relative reduction of an attack's average precision by an arm."""
    row = measured.row(place, PRECISION)
    undefended = measured.row(place.behind(UNDEFENDED), PRECISION)
    if row is None or undefended is None:
        return None
    return 1 - row.value.mean / undefended.value.mean
