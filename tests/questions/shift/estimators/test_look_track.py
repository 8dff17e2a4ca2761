import pytest
import torch

from overheard.questions.shift.estimators.look_track import look_track

ROUNDS, NUMBERS = 3, 5
SCALE = torch.tensor([1.0, 10.0, 0.1], dtype=torch.float64)[:, None]


def numbers_of(clients: int, length: float, seed: int = 0) -> torch.Tensor:
    """Moves of about this length, on another scale in each round, in any direction."""
    generator = torch.Generator().manual_seed(seed)
    ways = torch.randn(clients, ROUNDS, NUMBERS, generator=generator, dtype=torch.float64)
    lengths = torch.randn(clients, ROUNDS, 1, generator=generator, dtype=torch.float64)
    return ways / ways.norm(dim=2, keepdim=True) * (length + 0.1 * lengths) * SCALE


def test_virtual_clients_stand_at_their_mean_or_above() -> None:
    track = look_track(numbers_of(400, 1.0))
    assert float(track.of_virtual.min()) == 0
    # Half of them lie below the mean, and of a normal number E max(z, 0) = 0.399.
    assert float((track.of_virtual == 0).double().mean()) == pytest.approx(0.5, abs=0.05)
    assert float(track.of_virtual.mean()) == pytest.approx(0.399, abs=0.05)


def test_who_moves_representations_further_stands_out_in_every_round() -> None:
    track = look_track(numbers_of(100, 1.0))
    read = track.read(numbers_of(1, 1.6, seed=5)[0])
    assert read.shape == (ROUNDS, 1)
    assert float(read.min()) > 2


def test_who_is_familiar_to_the_model_stands_no_lower_than_a_stranger() -> None:
    track = look_track(numbers_of(100, 1.0))
    assert not bool(track.read(numbers_of(1, 0.4, seed=6)[0]).any())


def test_directions_do_not_matter_and_nothing_at_all_is_no_infinity() -> None:
    track, target = look_track(numbers_of(100, 1.0)), numbers_of(1, 1.5, seed=7)[0]
    assert torch.allclose(track.read(target), track.read(-target.flip(1)))
    assert bool(track.read(torch.zeros(ROUNDS, NUMBERS)).isfinite().all())
