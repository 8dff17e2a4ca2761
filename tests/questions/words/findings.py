"""Findings on words of six clients in two runs, with fits that are worked by hand."""

from collections.abc import Sequence
from dataclasses import replace

from overheard.core.parties import SERVER, Party, client
from overheard.core.scorer import Score
from overheard.findings.finding import Cell, ClaimRow, Finding

CLIENTS = 6

SEEDS = (0, 1)


def finding(
    seed: int, number: int, fits: Sequence[float], *, attack: str = "rows", user: str = ""
) -> Finding:
    """A finding about a client whose claim fits each of the clients so."""
    cell = Cell("none", seed, (SERVER,), attack, "Rows()", "words", (0,), label=attack)
    value = fits[number]
    scores = (
        Score("rare_word_precision", value, "higher", {"public text": 0.1}, {}),
        Score("rare_words_named", value, "higher", {"public text": 0.2}, {}),
        Score("word_precision", value, "higher", {"public text": 0.3}, {}),
    )
    return Finding(
        cell,
        (client(number),),
        ClaimRow((3.0, 2.0, 1.0), candidates=("<b>leek</b>", "turnip", "kale\u202e")),
        ClaimRow((1.0, 0.0, 1.0) if value > 0.5 else (0.0, 0.0, 0.0)),
        scores,
        true_user=user or None,
        fits=(value, *fits),
    )


def leaking() -> list[Finding]:
    """Every claim fits its own client with 0.9, and every other one with 0.1."""
    return [
        finding(seed, number, [0.9 if other == number else 0.1 for other in range(CLIENTS)])
        for seed in SEEDS
        for number in range(CLIENTS)
    ]


def silent() -> list[Finding]:
    """Every claim fits all clients alike."""
    return [
        finding(seed, number, [0.2] * CLIENTS) for seed in SEEDS for number in range(CLIENTS)
    ]


def about(found: Finding, target: Party) -> Finding:
    """The same finding about another target."""
    return replace(found, targets=(target,))
