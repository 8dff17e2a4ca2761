"""What kinds of clients an attacker expects who has no idea."""

from overheard.core.split import Split
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces

MIXTURE: tuple[Split, ...] = (
    Dirichlet(0.1),
    Dirichlet(0.32),
    Dirichlet(1.0),
    Dirichlet(3.2),
    Dirichlet(10.0),
    Faces(),
)
"""From one or two labels a client to all about alike, each kind as likely as the others.

Alphas stand at even steps of their logarithm; faces leave labels out altogether, as none of the
larger alphas does. Nothing here was fitted to any run."""
