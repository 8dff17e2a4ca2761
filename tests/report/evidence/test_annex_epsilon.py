"""Differential privacy: claimed, recomputed and proven epsilon with its result."""

from tests.gate.documents import bound, epsilon_row
from tests.report.evidence.annexes import annex_of, section_of

TITLE = "Differential privacy"


def test_states_all_three_epsilons() -> None:
    text = section_of(annex_of(), TITLE)
    assert "noisy: LocalDp(clip=1.0), for all data of a client, delta 1e-05" in text
    assert "The server | 1.5 | 2.00 | 0.50 or more | not refuted" in text


def test_a_bound_is_never_rounded_to_the_wrong_side() -> None:
    row = epsilon_row(is_recomputed=True, pld=2.001)
    row["measured"] = bound(0.509)
    text = section_of(annex_of(epsilon=[row]), TITLE)
    assert "2.01 | 0.50 or more" in text


def test_a_flaw_is_named_and_equal_rows_are_shown_once() -> None:
    text = section_of(annex_of(epsilon=[epsilon_row("flawed")] * 2), TITLE)
    assert text.count("guarantees nothing: it adds no noise") == 1


def test_no_mechanism_is_said() -> None:
    assert "No defense of this audit adds noise" in section_of(annex_of(epsilon=[]), TITLE)


def test_observers_of_the_models_alone_are_named() -> None:
    text = section_of(annex_of(epsilon=[epsilon_row(observers=[])]), TITLE)
    assert "Whoever reads the global models" in text
