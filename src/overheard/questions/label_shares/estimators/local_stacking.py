"""Weights of several estimates, fitted to virtual clients with similar label imbalance."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.learning.simplex import solve_for_shares

NEIGHBOUR_SHARE = 0.25
"""Fraction of the virtual clients to which the weights of one client are fitted."""

FEWEST_NEIGHBOURS = 60
"""Fewest of them, so that a handful of clients does not decide."""


@final
@dataclass(frozen=True, slots=True)
class LocalStacking:
    """Non-negative weights that sum to 1 and minimise the squared error near a client.

    Stacked regressions (Breiman 1996), fitted to the virtual clients whose imbalance, as
    estimated, is nearest. Which estimate is best depends on it: the equation of the output bias
    is nearly exact for clients with even shares, while networks are better for clients with few
    labels. Each estimate must be out of sample: made for a client that its estimator was not
    trained on.

    Args:
        products: for each virtual client, the products of all estimates and, last, the truth.
        overall: weights fitted to all virtual clients.
        imbalances: the imbalance of each virtual client, as estimated with `overall`.

    """

    products: Float[Tensor, "clients numbers numbers"]
    overall: Float[Tensor, " estimates"]
    imbalances: Float[Tensor, " clients"]

    def pool(
        self, estimates: Float[Tensor, "estimates new classes"]
    ) -> Float[Tensor, "new classes"]:
        """Return the mean of each client's estimates, with the weights of similar clients."""
        imbalances = imbalance(torch.einsum("e,enc->nc", self.overall, estimates))
        weights = self._fit((imbalances[:, None] - self.imbalances).abs())
        return torch.einsum("ne,enc->nc", weights, estimates)

    def weights_of_virtual(self) -> Float[Tensor, "clients estimates"]:
        """Return the weights for each virtual client, fitted to the others alone."""
        distances = (self.imbalances[:, None] - self.imbalances).abs()
        return self._fit(distances.fill_diagonal_(torch.inf))

    def _fit(self, distances: Float[Tensor, "new clients"]) -> Float[Tensor, "new estimates"]:
        clients = len(self.products)
        wanted = max(FEWEST_NEIGHBOURS, round(NEIGHBOUR_SHARE * clients))
        nearest = distances.topk(min(wanted, clients), largest=False).indices
        return torch.stack([_fit_weights(self.products[rows].mean(0)) for rows in nearest])


def fit_local_stacking(
    estimates: Float[Tensor, "estimates clients classes"],
    shares: Float[Tensor, "clients classes"],
) -> LocalStacking:
    """Prepare the fits to the virtual clients with these estimates and true shares."""
    numbers = torch.cat((estimates, shares[None])).double()
    products = torch.einsum("ivc,jvc->vij", numbers, numbers)
    overall = _fit_weights(products.mean(0))
    return LocalStacking(
        products, overall, imbalance(torch.einsum("e,evc->vc", overall, estimates.double()))
    )


def imbalance(shares: Float[Tensor, "clients classes"]) -> Float[Tensor, " clients"]:
    """Return the Euclidean length of the shares: 1 = one label, 1 / sqrt(classes) = even."""
    return shares.square().sum(1).sqrt()


def _fit_weights(products: Float[Tensor, "numbers numbers"]) -> Float[Tensor, " estimates"]:
    """Minimise the squared error, given the mean products of estimates and truth."""
    values, axes = torch.linalg.eigh(products)
    root = values.clamp(min=0).sqrt()[:, None] * axes.T  # root.T @ root = products
    return solve_for_shares(root[:, :-1], root[:, -1])
