"""How much of what guessing leaves open an attack learns, as a bar to see at a glance."""

from dataclasses import dataclass
from typing import final

from overheard.findings.number_format import SPACE, format_percent
from overheard.findings.threat_results import ThreatResult
from overheard.report.verdict_sentences import open_to_learn

LEAST = -0.125
"""Left end of the axis: worse than guessing by an eighth of what guessing leaves open."""

ROUNDING = 1e-9
"""By how much a share may exceed 1 by rounding."""

LEFT, RIGHT = 26.0, 194.0
"""Where guessing and a perfect claim are drawn, in units of the drawing's width of 200."""


@final
@dataclass(frozen=True, slots=True)
class GainBar:
    """The gain of the best attack over guessing, as a share of what a perfect claim gains.

    So 0 is guessing and 1 is perfect in all scores, whichever direction is better and whether
    errors have an upper end or not. The scale is linear. Below 0,
    claims are worse than guesses.

    Args:
        mean: the gain of the best attack; at most 1.
        low: lower end of its 95 % interval; None = there is no interval.
        high: upper end, likewise.
        margin: the smallest gain that the plan takes seriously; None = there is none.

    """

    mean: float
    low: float | None
    high: float | None
    margin: float | None

    @property
    def number(self) -> str:
        r"""The gain in percent; "none" if the best attack does no better than guessing.

        >>> GainBar(0.804, None, None, None).number, GainBar(-0.3, None, None, None).number
        ('80\xa0%', 'none')
        """
        return _percent(self.mean) if self.mean > 0 else "none"

    @property
    def text(self) -> str:
        r"""All that is drawn, in words.

        >>> GainBar(0.8, 0.7, 0.9, None).text.replace("\xa0", " ")
        'learns 80 % of what guessing leaves open (95 % interval: 70 % to 90 %)'
        """
        learns = "does no better than guessing"
        if self.mean > 0:
            learns = f"learns {self.number} of what guessing leaves open"
        if self.low is None or self.high is None:
            return learns
        ends = f"{_percent(self.low)} to {_percent(self.high)}"
        return f"{learns} (95{SPACE}% interval: {ends})"

    @property
    def is_cut(self) -> bool:
        """Whether something of it lies to the left of the axis."""
        return min(self.mean, self.mean if self.low is None else self.low) < LEAST


KEY_BAR = GainBar(0.56, 0.43, 0.69, 0.14)
"""The bar that shows how bars are read."""

BAR_WORDS = (
    "A bar and its number show how much of what guessing leaves open the best attack learns: "
    f"0{SPACE}% is guessing, 100{SPACE}% is a perfect claim."
)
"""What bars show."""

BAR_DETAILS = (
    "The scale of the bars is linear, and the same for all questions, whether high or low "
    "scores are better. Left of the dashed line, attacks do worse than guessing; an arrow goes "
    "on beyond the drawing. The tick below a bar is the margin. A dashed, empty bar has no "
    "score."
)
"""How bars are drawn."""


def gain_bar(threat_result: ThreatResult) -> GainBar | None:
    """Return the bar of a result; None if nothing was measured or guessing leaves no room.

    Where not even a perfect claim would gain the margin, there is none either: a share of what
    hardly exists would look like a leak.

    It rests on the gain that the verdict rests on, whose interval allows for the choice of the
    best attack. Where labels alone gain something, they are part of the guess.
    """
    gain, room = threat_result.judgement.gain, open_to_learn(threat_result)
    if threat_result.verdict == "nothing to read" or gain is None or room is None:
        return None
    if gain.mean > room * (1 + ROUNDING):
        # A gain beyond a perfect claim: where the scores of this question end is not known.
        return None
    margin = threat_result.judgement.margins.get(threat_result.attack_results[0].headline)
    return GainBar(
        gain.mean / room,
        None if gain.low is None else gain.low / room,
        None if gain.high is None else min(1.0, gain.high / room),
        None if margin is None else margin / room,
    )


def _percent(share: float) -> str:
    return format_percent(round(share, 2)).replace(".0", "", 1)


def place(share: float) -> float:
    """Return where a share is drawn, in units of the drawing; the axis ends where it does.

    >>> place(0.0), place(1.0), place(-5.0)
    (26.0, 194.0, 5.0)
    """
    return round(LEFT + (RIGHT - LEFT) * min(1.0, max(LEAST, share)), 1)
