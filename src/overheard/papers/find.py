"""Finds an experiment by the name that the command line has for it."""

from collections.abc import Mapping

import overheard.papers.library
from overheard.core.discover import discover
from overheard.core.errors import PlanError
from overheard.papers.experiment import Experiment, Paper


def papers() -> Mapping[str, Paper]:
    """Every paper that can be run anew, by name."""
    found = discover(overheard.papers.library, Paper)
    return {name: paper() for name, paper in found.items()}


def find_experiment(name: str) -> Experiment:
    """The experiment with this name, such as "decaf/table3".

    Raises:
        PlanError: if there is none, with those that there are.

    """
    paper, _, experiment = name.partition("/")
    known = papers()
    if paper not in known:
        raise PlanError(f"no paper {paper!r}: there are {', '.join(known)}")
    experiments = known[paper].experiments()
    if experiment not in experiments:
        raise PlanError(
            f"{paper} has no experiment {experiment!r}: name one as {paper}/NAME, of "
            + ", ".join(experiments)
        )
    return experiments[experiment]
