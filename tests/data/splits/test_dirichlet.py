import torch

from overheard.core.seeds import Seed
from overheard.data.splits.dirichlet import Dirichlet

LABELS = torch.arange(40_000) % 4


def shares(alpha: float, clients: int, size: int) -> torch.Tensor:
    rows = Dirichlet(alpha).assign(LABELS, None, torch.tensor([size] * clients), 4, Seed(5))
    return torch.stack(
        [LABELS[client_rows].bincount(minlength=4) / size for client_rows in rows]
    )


def test_shares_have_the_variance_of_the_distribution() -> None:
    # Var p_c = (1/4)(3/4) / (4 * 0.5 + 1) = 0.0625 for alpha 0.5 and 4 classes.
    variance = shares(0.5, 400, 50).var(dim=0)
    assert torch.allclose(variance, torch.full((4,), 0.0625), atol=0.015)


def test_clients_that_use_up_the_pool_get_their_sizes() -> None:
    labels = torch.arange(100) % 4
    rows = Dirichlet(0.1).assign(labels, None, torch.tensor([20] * 5), 4, Seed(0))
    assert torch.cat(rows).sort().values.equal(torch.arange(100))
