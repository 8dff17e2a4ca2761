"""Both sides of a benchmark in turn, and a row with the ratios of their seconds."""

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from _ratios import keep_ratio

Seconds = tuple[float, float]
"""The seconds of our side and of the other, run one after the other."""


def compare(
    what: str,
    plain: Callable[[], Iterable[object]],
    ours: Callable[[], Iterable[object]],
    bar: float,
    repeats: int,
    clock: Callable[[], float] = time.process_time,
) -> None:
    """Run both sides in turn, after one warm-up run of each, and print their row."""
    consume(plain())
    consume(ours())
    pairs = []
    for _ in range(repeats):
        began = clock()
        consume(plain())
        between = clock()
        consume(ours())
        pairs.append((clock() - between, between - began))
    print_row(what, pairs, bar)


def consume(things: Iterable[object]) -> None:
    """Consume an iterable without storing it, like a caller that writes updates to disk."""
    deque(things, maxlen=0)


def print_row(what: str, pairs: Sequence[Seconds], bar: float) -> None:
    """Print and keep how many times as fast our side is; `bar` is the least accepted."""
    ratios = [theirs / ours for ours, theirs in pairs]
    keep_ratio(what, ratios)
    reached = statistics.median(ratios) >= bar
    print(f"{_format(what, pairs, ratios)}   >= {bar:.1f}x  {_verdict(reached)}", flush=True)


def print_overhead(what: str, pairs: Sequence[Seconds], bar: float) -> None:
    """Print how many times as long our side takes; `bar` is the most accepted."""
    ratios = [ours / theirs for ours, theirs in pairs]
    reached = statistics.median(ratios) <= bar
    print(f"{_format(what, pairs, ratios)}   <= {bar:.2f}x  {_verdict(reached)}", flush=True)


def _format(what: str, pairs: Sequence[Seconds], ratios: Sequence[float]) -> str:
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    return (
        f"{what:<58} {ours:7.2f} s {theirs:7.2f} s {statistics.median(ratios):7.3f}x "
        f"({min(ratios):.3f} - {max(ratios):.3f})"
    )


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"
