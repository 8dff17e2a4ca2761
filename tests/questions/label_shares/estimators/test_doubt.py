"""The check that real updates are like those of virtual clients."""

from math import log

import pytest
import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.doubt import (
    LARGEST_SHIFT,
    NOISY,
    OTHER_INPUTS,
    POORLY_EXPLAINED,
    TOO_FEW,
    find_doubt,
    is_size_doubted,
)

CLIENTS = 240
ROUNDS = 2
TRUE_IMBALANCE = torch.linspace(0.3, 1, CLIENTS, dtype=torch.float64)


def drawn(imbalances: Tensor, seed: int, *, added: tuple[float, float, float] = (0, 0, 0)):
    """Return readings with a spread of 1 that fall by 20 from even to one label."""
    noise = torch.randn(len(imbalances), ROUNDS, 3, generator=Seed(seed).generator())
    return noise.double() - 20 * imbalances[:, None, None] + torch.tensor(added)


def doubt(
    targets: int,
    seed: int = 1,
    *,
    added=(0.0, 0.0, 0.0),
    at=None,
    shift: float = 1.0,
    repetition: float = 1.0,
) -> str | None:
    imbalances = torch.linspace(0.4, 0.9, targets, dtype=torch.float64)
    if at is not None:
        imbalances = torch.full_like(imbalances, at)
    return find_doubt(
        drawn(TRUE_IMBALANCE, 0),
        drawn(imbalances, seed, added=added),
        TRUE_IMBALANCE,
        imbalances,
        shift,
        repetition,
    )


def test_clients_like_the_virtual_ones_are_not_doubted() -> None:
    assert [doubt(20, seed) for seed in range(1, 30)] == [None] * 29
    assert sum(bool(doubt(2, seed)) for seed in range(1, 30)) <= 3


def test_an_imbalance_of_its_own_is_no_reason() -> None:
    # Among all virtual clients, these would be extreme.
    assert doubt(20, at=0.45) is None
    assert doubt(20, at=0.85) is None


def test_unexplained_updates_are_told_apart_from_noisy_ones() -> None:
    assert doubt(20, added=(4.0, 4.0, 0.0)) == POORLY_EXPLAINED
    assert doubt(20, added=(4.0, 4.0, 20.0)) == NOISY


def test_variety_is_a_reason_if_virtual_clients_repeat_their_examples() -> None:
    varied = (0.0, 0.0, 4.0)
    assert doubt(20, added=varied, repetition=3.0) == TOO_FEW
    assert doubt(20, added=varied, repetition=1.5) is None
    assert doubt(20, repetition=3.0) is None
    # So much would be called noise, were few examples not as likely a reason.
    assert doubt(20, added=(0.0, 0.0, 20.0), repetition=3.0) == TOO_FEW
    # A single client may be as varied by chance.
    assert sum(bool(doubt(1, one, added=varied, repetition=3.0)) for one in range(1, 20)) < 12


def test_noisier_virtual_updates_count_as_poorly_explained() -> None:
    assert doubt(20, added=(0.5, 0.5, -10.0)) == POORLY_EXPLAINED


def test_a_single_client_needs_a_larger_misfit() -> None:
    assert doubt(40, added=(1.3, 1.3, 0.0)) == POORLY_EXPLAINED
    assert sum(bool(doubt(1, seed, added=(1.3, 1.3, 0.0))) for seed in range(1, 20)) < 12


def test_inputs_used_in_other_proportions_are_a_reason_of_their_own() -> None:
    assert doubt(20, shift=LARGEST_SHIFT) is None
    assert doubt(20, shift=2 * LARGEST_SHIFT) == OTHER_INPUTS
    assert doubt(20, added=(0.0, 0.0, 20.0), shift=2 * LARGEST_SHIFT) == NOISY


def test_no_client_is_no_reason() -> None:
    none = torch.zeros(0, ROUNDS, 3)
    virtual = drawn(TRUE_IMBALANCE, 0)
    assert find_doubt(virtual, none, TRUE_IMBALANCE, torch.zeros(0), 0.0, 1.0) is None


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("factor", "largest_error", "doubted"),
    [(1.9, 1.0, False), (2.1, 1.0, True), (2.1, 2.2, False), (3.0, 2.2, True)],
)
def test_a_size_is_doubted_beyond_a_factor_of_two_and_nearly_all_errors_of_virtual_clients(
    factor: float, largest_error: float, doubted: bool, sign: int
) -> None:
    # Of 199 errors, the second largest is the quantile: 0.99 * 200 = 198.
    errors = torch.zeros(199)
    errors[:2] = torch.tensor([9.0, -sign * log(largest_error)])
    assert is_size_doubted(sign * log(factor), errors) == doubted


def test_no_size_is_doubted_if_too_few_virtual_clients_state_how_rare_it_is() -> None:
    assert is_size_doubted(4.0, torch.zeros(99))
    assert not is_size_doubted(4.0, torch.zeros(98))
