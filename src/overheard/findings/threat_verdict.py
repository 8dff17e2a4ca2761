"""The verdict on all attacks of a threat on one question in one arm."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, final

from overheard.statistics.estimate import Estimate
from overheard.statistics.judgement import VERDICT_LEVEL, Judgement

TargetKind = Literal["clients", "cohort"]

Verdict = Literal[Judgement, "unchecked", "unmeasured"]
"""A judgement; or unchecked: claims were made, but there is no ground truth; unmeasured: no
attack could run."""


NO_LEAK: tuple[Verdict, ...] = ("no leak above margin", "nothing to read")
"""The verdicts that say that nothing leaks."""


@final
@dataclass(frozen=True, slots=True)
class ThreatVerdict:
    """The verdict on all attacks of a threat on one question in one arm.

    Args:
        verdict: the verdict.
        attack: full name of the attack with the smallest p-value, of those that gain something
            if the verdict is "leaks"; "" = there is no test.
        p_value: its p-value, adjusted for the number of attacks; None = there is no test.
        smallest_p_value: the smallest p-value that the test could give; None = there is none.
        gain: the gain of the strongest attack in the headline score, with an interval that
            allows for the choice of the attack; None = there is no guess to compare with.
        margins: by score, the smallest gain that matters.
        is_below_margin: whether the gains of all attacks are shown to be below the margins.
        why: why it is not enough to judge; "" otherwise.
        shared_gains: by full name of an attack, what its claims gain although they tell no
            target from another, as labels alone do in membership; `gain` is without it. An
            attack that is not named gains nothing so.
        withheld: why it must not be said that nothing leaks, such as a failure of Overheard in
            one of the attacks; "" = it may be said if it is shown.

    """

    verdict: Verdict
    attack: str = ""
    p_value: float | None = None
    smallest_p_value: float | None = None
    gain: Estimate | None = None
    margins: Mapping[str, float] = field(default_factory=dict)
    is_below_margin: bool = False
    why: str = ""
    shared_gains: Mapping[str, float] = field(default_factory=dict)
    withheld: str = ""

    def withhold(self, why: str) -> "ThreatVerdict":
        """Return the verdict if it must not be said that nothing leaks; the only such place.

        A verdict that says so becomes "not enough to judge"; others stay.

        Args:
            why: the reason, as a clause; "" = it may be said.

        """
        if not why:
            return self
        if self.verdict in NO_LEAK:
            return replace(self, verdict="not enough to judge", why=why, withheld=why)
        return replace(self, withheld=why)

    @property
    def least_gain(self) -> float | None:
        """Lower end of the interval of the gain; None if there is none."""
        return None if self.gain is None else self.gain.low

    @property
    def is_related_without_gain(self) -> bool:
        """Whether claims are related to their targets, but err as much as a guess or more."""
        return self.verdict != "leaks" and (self.p_value or 1.0) <= VERDICT_LEVEL

    @property
    def is_tested(self) -> bool:
        """Whether the verdict may be a false "leaks", as a test was made that can give one."""
        return self.smallest_p_value is not None and self.smallest_p_value <= VERDICT_LEVEL
