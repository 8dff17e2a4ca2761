import torch

from overheard.bank.look_track import MOST_DIRECTIONS, look_track

CLASSES, ROUNDS, NUMBERS = 3, 2, 12


def world(clients: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Shares, a look along one direction, and numbers that both move."""
    generator = torch.Generator().manual_seed(seed)
    ways = torch.Generator().manual_seed(99)
    shares = torch.rand(clients, CLASSES, generator=generator, dtype=torch.float64)
    shares = shares / shares.sum(1, keepdim=True)
    look = torch.randn(clients, generator=generator, dtype=torch.float64)
    by_share = torch.randn(CLASSES, NUMBERS, generator=ways, dtype=torch.float64)
    by_look = torch.randn(NUMBERS, generator=ways, dtype=torch.float64)
    numbers = 5 * shares @ by_share + look[:, None] * by_look
    return shares, look, numbers[:, None].expand(-1, ROUNDS, -1).clone()


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack((a, b)))[0, 1].abs())


def test_what_shares_explain_is_taken_off_and_the_look_stays() -> None:
    shares, look, numbers = world(200, 0)
    told = shares[:, None].expand(-1, ROUNDS, -1)
    track = look_track(numbers, shares, told, torch.arange(200) % 2)
    first = track.of_virtual[:, 0, 0]
    assert correlation(first, look) > 0.95
    assert max(correlation(first, shares[:, c]) for c in range(CLASSES)) < 0.2


def test_a_target_is_read_as_virtual_clients_are() -> None:
    shares, _, numbers = world(100, 1)
    told = shares[:, None].expand(-1, ROUNDS, -1)
    track = look_track(numbers, shares, told, torch.arange(100) % 2)
    read = track.read(numbers[7], told[7])
    assert torch.allclose(read, track.of_virtual[7], atol=0.2)


def test_only_the_strongest_directions_are_followed() -> None:
    generator = torch.Generator().manual_seed(0)
    shares, _, _ = world(60, 2)
    numbers = torch.randn(60, ROUNDS, 40, generator=generator)
    told = shares[:, None].expand(-1, ROUNDS, -1)
    track = look_track(numbers, shares, told, torch.arange(60) % 2)
    assert track.of_virtual.shape == (60, ROUNDS, MOST_DIRECTIONS)


def test_numbers_that_never_move_are_followed_as_nothing() -> None:
    shares, _, numbers = world(40, 3)
    numbers[:, :, 0] = 3.0
    told = shares[:, None].expand(-1, ROUNDS, -1)
    track = look_track(numbers, shares, told, torch.arange(40) % 2)
    other = numbers[5].clone()
    other[:, 0] = 1e6
    assert torch.equal(track.read(numbers[5], told[5]), track.read(other, told[5]))
