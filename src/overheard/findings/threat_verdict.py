"""The verdict on all attacks of a threat on one question in one arm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, final

from overheard.statistics.estimate import Estimate
from overheard.statistics.judgement import VERDICT_LEVEL, Judgement

TargetKind = Literal["clients", "cohort"]

Verdict = Literal[Judgement, "unchecked", "unmeasured"]
"""A judgement; or unchecked: claims were made, but there is no ground truth; unmeasured: no
attack could run."""


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
