"""The table of the first page, small enough for a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from rich.console import Console
from rich.text import Text

from overheard.cli.terminal import escaped_text
from overheard.findings.names import make_printable
from overheard.findings.number_format import SPACE
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.report.first_page.gain_bar import GainBar, gain_bar
from overheard.report.verdict_sentences import badge_of

STYLES = {
    "leaks": "bold red",
    "no leak above margin": "green",
    "nothing to read": "green",
}
"""Colours of verdicts; their words stand beside them, so colours add nothing."""

NARROW, WIDE = 10, 24
"""Fewest and most columns of a bar."""

SIDES = 34
"""Columns of a line beside its arm and its bar: spaces, the longest verdict, the number."""

LONGEST_NAME = 24
"""Most columns of the name of an arm."""


@final
@dataclass(frozen=True, slots=True)
class Glyphs:
    """What a bar is drawn with: guess and perfect claim, gain, interval, and what is left."""

    guess: str
    perfect: str
    gain: str
    span: str
    both: str
    rest: str
    empty: str


UNICODE = Glyphs("┊", "│", "█", "─", "▓", "·", "╌")
PLAIN = Glyphs("|", "|", "#", "-", "=", ".", " ")


def as_encodable(text: str, console: Console) -> str:
    """Return the text with quotation marks and signs that an ASCII terminal can show."""
    plain = text.replace(SPACE, " ")
    if not console.options.ascii_only:
        return plain
    for sign, spelled in (("“", '"'), ("”", '"'), ("−", "-"), ("–", "-"), ("·", "-")):
        plain = plain.replace(sign, spelled)
    return plain.encode("ascii", "backslashreplace").decode("ascii")


def print_thumbnail(arm_results: Sequence[ArmResult], console: Console) -> None:
    """Print each verdict with its bar: threats one below the other, arms below each threat.

    Lines are cut to the width of the terminal. Without Unicode, bars are ASCII; without
    colours, the verdict's words remain.
    """
    threats: dict[str, list[ThreatResult]] = {}
    for arm in arm_results:
        for one in arm.threat_results:
            threats.setdefault(one.title, []).append(one)
    if not threats:
        return
    glyphs = PLAIN if console.options.ascii_only else UNICODE
    longest = max(len(make_printable(arm.name)) for arm in arm_results)
    names = min(longest, LONGEST_NAME, max(6, console.width - SIDES - NARROW))
    width = max(NARROW, min(WIDE, console.width - SIDES - names))
    has_bars = False
    for title, results in threats.items():
        head = _fit(as_encodable(title, console), console.width)
        console.print(head, style="bold", no_wrap=True, overflow="crop")
        for one in results:
            line = Text.assemble(
                "  ", _fit(as_encodable(one.arm, console), names, pad=True), "  "
            )
            line.append_text(_verdict(one))
            bar = gain_bar(one)
            has_bars = has_bars or bar is not None
            line.append(f" {draw_bar(bar, width, glyphs)}")
            line.append("" if bar is None else f" {as_encodable(bar.number, console)}")
            console.print(line, no_wrap=True, overflow="crop")
    if has_bars:
        console.print(f"Bars: {'; '.join(_key(glyphs))}.")


def draw_bar(bar: GainBar | None, width: int, glyphs: Glyphs) -> str:
    """Return the bar as a line of text, from guessing to a perfect claim.

    Args:
        bar: what to draw; None = no score, an empty bar.
        width: its length in columns, with both ends.
        glyphs: what it is drawn with.

    """
    inner = width - 2
    if bar is None:
        return f"{glyphs.guess}{glyphs.empty * inner}{glyphs.perfect}"
    end = _columns(bar.mean, inner)
    low, high = (None if one is None else _columns(one, inner) for one in (bar.low, bar.high))
    cells = ""
    for column in range(inner):
        is_gain = column < end
        is_span = low is not None and high is not None and low <= column < high
        if is_gain and is_span:
            cells += glyphs.both
        elif is_gain:
            cells += glyphs.gain
        else:
            cells += glyphs.span if is_span else glyphs.rest
    return f"{glyphs.guess}{cells}{glyphs.perfect}"


def _columns(share: float, inner: int) -> int:
    """Return how many columns a share fills; below guessing none, and any gain one at least."""
    return 0 if share <= 0 else max(1, min(inner, round(share * inner)))


def _key(glyphs: Glyphs) -> Iterator[str]:
    yield f"from guessing ({glyphs.guess}) to a perfect claim ({glyphs.perfect})"
    yield f"{glyphs.gain} is the part of what guessing leaves open that the best attack learns"
    yield f"{glyphs.both}{glyphs.span} is its 95 % interval"


def _verdict(result: ThreatResult) -> Text:
    text = badge_of(result.judgement)
    return Text(f"{text:<24}", style=STYLES.get(result.verdict, ""))


def _fit(text: str, width: int, *, pad: bool = False) -> Text:
    """Return a name cut, or padded too, to a number of columns; wide characters fill two."""
    fitted = escaped_text(make_printable(text))
    fitted.truncate(width, overflow="crop", pad=pad)
    return fitted
