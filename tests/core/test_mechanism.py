"""A mechanism knows which observers its noise covers and whether it has a flaw."""

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from overheard.core.mechanism import Mechanism
from overheard.core.parties import SERVER, client

LOCAL = Mechanism(1.0, 2.0, 1e-5, "client", "client")
CENTRAL = replace(LOCAL, noised_at="server")


def test_noise_at_the_server_does_not_cover_the_server_and_colluders() -> None:
    assert CENTRAL.covers(())
    assert CENTRAL.covers((client(1), client(2)))
    assert not CENTRAL.covers((SERVER,))
    assert not CENTRAL.covers((client(1), SERVER))


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise_multiplier": -1.0},
        {"noise_multiplier": nan},
        {"noise_multiplier": inf},
        {"clip": 0.0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"moves": 0.0},
        {"steps": 0},
        {"stated": -0.1},
        {"stated": nan},
    ],
)
def test_refuses_settings_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be "):
        replace(LOCAL, **wrong)  # type: ignore[arg-type]


def test_refuses_sampling_with_several_noise_draws_a_round() -> None:
    # The clients are sampled once a round, not anew for each local step.
    with pytest.raises(ValueError, match="is_drawn to False or steps to 1"):
        Mechanism(1.0, 1.0, 1e-5, "server", "client", is_drawn=True, steps=2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"record_sampling": "poisson", "record_rate": 0.1}, "set unit to 'record'"),
        ({"unit": "record", "record_sampling": "poisson"}, "record_rate is the share"),
        ({"unit": "record", "record_rate": 0.1}, "record_rate is the share"),
        ({"unit": "record", "record_sampling": "none", "record_rate": 0.1}, "and only then"),
        ({"unit": "record", "record_sampling": "fixed", "record_rate": 1.5}, "at most 1"),
    ],
)
def test_refuses_a_sampling_of_records_that_is_not_whole(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        replace(LOCAL, **changes)


def test_the_relation_follows_from_the_sensitivity() -> None:
    assert LOCAL.relation == "replace-one"
    assert replace(LOCAL, moves=1.0).relation == "add-or-remove"
