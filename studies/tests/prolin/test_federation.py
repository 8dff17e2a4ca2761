"""F1 scores of the clients that are named, worked by hand."""

import pytest

from overheard.core.parties import client
from overheard_studies.prolin.federation import f1_score

HOLDERS = frozenset({client(0), client(1), client(2)})


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    # Two of four named clients hold the record, and two of three holders are named: 4 / 7.
    scores = {client(0): 1.0, client(1): 0.1, client(2): -1.0}
    scores |= {client(3): 2.0, client(4): 0.5, client(5): 0.0}
    assert f1_score(scores, HOLDERS) == pytest.approx(4 / 7)
    assert f1_score(dict.fromkeys(HOLDERS, 1.0), HOLDERS) == 1
    assert f1_score({client(0): -1.0}, HOLDERS) == 0
