"""An attacker's own errors are stated with the number of virtual clients that it trained."""

from overheard.core.claims import LearningCurve
from overheard.core.parties import SERVER, client
from overheard.drawing.coverage import learning_curve_sentences
from overheard.findings.finding import Cell, ClaimRow, Finding

CELL = Cell("no defense", 0, (SERVER,), "amortised", "Amortised()", "label_shares", (0,))


def claims(*curves: LearningCurve | None) -> tuple[Finding, ...]:
    return tuple(
        Finding(CELL, (client(number),), ClaimRow((1.0,), learning_curve=curve))
        for number, curve in enumerate(curves)
    )


def test_states_each_curve_once():
    stopped = LearningCurve((160, 320), (0.25, 0.2461), 320, 1200)
    whole = LearningCurve((160,), (0.5,), 320, 320)
    assert learning_curve_sentences(claims(stopped, stopped, None, whole)) == (
        "The attacker trained 320 of 1200 virtual clients, as its own error hardly fell when "
        "their number was doubled. Its own error (L1): 0.250 with 160, 0.246 with 320.",
        "The attacker trained all 320 virtual clients. Its own error (L1): 0.500 with 160.",
    )
    assert learning_curve_sentences(claims(None)) == ()
