"""Whether real updates use the inputs as those of virtual clients do."""

import pytest
import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.amortised import input_shift

CLIENTS = 120
CLASSES = 3
INPUTS = 20

HALVES = torch.arange(CLIENTS) % 2


def drawn_shares(clients: int, seed: int) -> Tensor:
    weights = torch.rand(clients, CLASSES, generator=Seed(seed).generator()).double()
    return weights / weights.sum(1, keepdim=True)


def readings(shares: Tensor, seed: int) -> Tensor:
    """Return readings that depend on shares, with a spread of 0.3 of their own."""
    by_class = torch.randn(CLASSES, INPUTS, generator=Seed(0).generator()).double()
    own = torch.randn(len(shares), 1, INPUTS, generator=Seed(seed).generator())
    return (shares @ by_class)[:, None] + 0.3 * own


def of_half(spread: float) -> Tensor:
    """Return what the examples of each half add to the readings of its clients."""
    drawn = spread * torch.randn(2, INPUTS, generator=Seed(7).generator())
    return drawn[HALVES][:, None]


VIRTUAL_SHARES = drawn_shares(CLIENTS, 1)
VIRTUAL = readings(VIRTUAL_SHARES, 2)


def shift(targets: int, added: Tensor | float, virtual: Tensor = VIRTUAL) -> float:
    shares = drawn_shares(targets, 3)
    real = readings(shares, 4) + added
    return input_shift(virtual, real, VIRTUAL_SHARES, shares, HALVES)


def test_clients_of_one_population_have_a_ratio_near_one() -> None:
    assert 0.3 < shift(8, 0.0) < 2
    assert 0.3 < shift(1, 0.0) < 2


def test_other_units_of_some_inputs_have_a_large_ratio() -> None:
    other_units = torch.zeros(INPUTS)
    other_units[:4] = 2.0
    # Mean square .8 over the variance .09 / 8 of a mean of 8 targets: about 71.
    assert shift(8, other_units) == pytest.approx(71, rel=0.25)


def test_labels_of_their_own_are_no_shift() -> None:
    # Of clients with the first label only; the shift would be large without the regression.
    shares = torch.zeros(8, CLASSES).double()
    shares[:, 0] = 1
    alike = input_shift(VIRTUAL, readings(shares, 4), VIRTUAL_SHARES, shares, HALVES)
    wrong = input_shift(
        VIRTUAL, readings(shares, 4), VIRTUAL_SHARES, torch.full_like(shares, 1 / 3), HALVES
    )
    assert alike < 4
    assert wrong > 20


def test_a_difference_between_the_halves_is_what_chance_does() -> None:
    # The same shift, once of size one where halves agree, once where they differ as much.
    added = torch.randn(INPUTS, generator=Seed(9).generator())
    assert shift(8, added) > 30
    assert shift(8, added, VIRTUAL + of_half(1.5)) < 5


def test_no_target_and_a_missing_half_give_no_evidence() -> None:
    none = torch.zeros(0, 1, INPUTS)
    assert input_shift(VIRTUAL, none, VIRTUAL_SHARES, torch.zeros(0, CLASSES), HALVES) == 0
    shares = drawn_shares(8, 3)
    real = readings(shares, 4) + 5
    assert input_shift(VIRTUAL, real, VIRTUAL_SHARES, shares, 0 * HALVES) == 0
