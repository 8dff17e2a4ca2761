import torch

from overheard.core.seeds import Seed
from overheard.linkage.matcher import Matcher, fit_cross_modal, fit_siamese
from overheard.linkage.training_pairs import draw_embedding_pairs, draw_update_pairs

USERS = torch.arange(12).repeat(4)


def vectors(noise: float, seed: int = 0) -> torch.Tensor:
    """Four noisy updates of each of twelve users around the user's centre."""
    draw = Seed(seed).generator()
    places = torch.randn(12, 10, generator=Seed(9).generator())
    return places[USERS] + noise * torch.randn(len(USERS), 10, generator=draw)


def gap(probabilities: torch.Tensor, values: torch.Tensor) -> float:
    """Mean probability of true matches less that of other pairs."""
    match = USERS[:, None] == values
    return float(probabilities[match].mean() - probabilities[~match].mean())


def siamese(noise: float) -> Matcher:
    pairs = draw_update_pairs(USERS, 6000, Seed(1), "me")
    return fit_siamese(vectors(noise), pairs, Seed(2))


def test_siamese_networks_match_unseen_updates() -> None:
    matcher = siamese(0.2)
    assert gap(matcher.probabilities(vectors(0.2, 5), vectors(0.2)), USERS) > 0.6


def test_siamese_networks_match_nothing_in_noise() -> None:
    matcher = siamese(100.0)
    assert abs(gap(matcher.probabilities(vectors(100.0, 5), vectors(100.0)), USERS)) < 0.1


def test_probabilities_are_the_networks_outputs_for_each_pair() -> None:
    matcher = siamese(0.2)
    left, right = vectors(0.2, 5)[:5], vectors(0.2)[:7]
    one = left.repeat_interleave(7, 0)
    pair_by_pair = matcher.network(one, right.repeat(5, 1)).detach().sigmoid()
    torch.testing.assert_close(
        matcher.probabilities(left, right), pair_by_pair.view(5, 7).double()
    )


def test_matches_updates_with_embeddings() -> None:
    places = torch.randn(12, 10, generator=Seed(9).generator())
    embeddings = places @ torch.randn(10, 6, generator=Seed(8).generator())
    pairs = draw_embedding_pairs(USERS, 12_000, Seed(1), "me")
    matcher = fit_cross_modal(vectors(0.2), embeddings, pairs, Seed(2))
    assert gap(matcher.probabilities(vectors(0.2, 5), embeddings), torch.arange(12)) > 0.4
