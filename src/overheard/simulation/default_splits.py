"""The default splits of an attacker without prior knowledge of label shares."""

from overheard.core.split import Split
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces

DEFAULT_SPLITS: tuple[Split, ...] = (
    Dirichlet(0.1),
    Dirichlet(0.32),
    Dirichlet(1.0),
    Dirichlet(3.2),
    Dirichlet(10.0),
    Faces(),
)
"""From one or two labels per client to about equal shares; all splits are equally likely.

Alphas are evenly spaced in their logarithm. `Faces` leaves out labels, which larger alphas do
not. Nothing here was fitted to any run."""
