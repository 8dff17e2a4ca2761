import pytest
import torch

from overheard.questions.shift.estimators.tracker import fit_representation_track

ROUNDS, NUMBERS = 3, 5
SCALE = torch.tensor([1.0, 10.0, 0.1], dtype=torch.float64)[:, None]


def numbers_of(clients: int, length: float, seed: int = 0) -> torch.Tensor:
    """Draw changes of about this length, on a different scale in each round."""
    generator = torch.Generator().manual_seed(seed)
    ways = torch.randn(clients, ROUNDS, NUMBERS, generator=generator, dtype=torch.float64)
    lengths = torch.randn(clients, ROUNDS, 1, generator=generator, dtype=torch.float64)
    return ways / ways.norm(dim=2, keepdim=True) * (length + 0.1 * lengths) * SCALE


def test_simulated_targets_have_distances_of_at_least_their_mean() -> None:
    changes = numbers_of(400, 1.0)
    distances = fit_representation_track(changes).read(changes)
    assert float(distances.min()) == 0
    # Half of them are below the mean; for a normal number E max(z, 0) = 0.399.
    assert float((distances == 0).double().mean()) == pytest.approx(0.5, abs=0.05)
    assert float(distances.mean()) == pytest.approx(0.399, abs=0.05)


def test_larger_changes_have_larger_distances_in_every_round() -> None:
    track = fit_representation_track(numbers_of(100, 1.0))
    read = track.read(numbers_of(1, 1.6, seed=5))
    assert read.shape == (1, ROUNDS, 1)
    assert float(read.min()) > 2


def test_smaller_changes_count_as_the_mean() -> None:
    track = fit_representation_track(numbers_of(100, 1.0))
    assert not bool(track.read(numbers_of(1, 0.4, seed=6)).any())


def test_directions_do_not_matter_and_zero_changes_are_finite() -> None:
    track, target = fit_representation_track(numbers_of(100, 1.0)), numbers_of(1, 1.5, seed=7)
    assert torch.allclose(track.read(target), track.read(-target.flip(2)))
    assert bool(track.read(torch.zeros(1, ROUNDS, NUMBERS)).isfinite().all())
