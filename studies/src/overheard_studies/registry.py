"""The papers, and lookup of an experiment by its name on the command line."""

from collections.abc import Mapping

import overheard_studies.library
from overheard.core.errors import PlanError
from overheard.core.plugin_discovery import discover_plugins
from overheard_studies.experiment import Experiment, Paper


def discover_papers() -> Mapping[str, Paper]:
    """Return every paper that can be reproduced, by name."""
    classes = discover_plugins(overheard_studies.library, Paper)
    return {name: paper() for name, paper in classes.items()}


def find_experiment(name: str) -> Experiment:
    """Return the experiment with this name, such as "decaf/table3".

    Raises:
        PlanError: if there is none; the message lists the known names.

    """
    paper, _, experiment = name.partition("/")
    known = discover_papers()
    if paper not in known:
        raise PlanError(f"unknown paper {paper!r}; known papers: {', '.join(known)}")
    experiments = known[paper].experiments()
    if experiment not in experiments:
        raise PlanError(
            f"{paper} has no experiment {experiment!r}; use {paper}/NAME with one of: "
            + ", ".join(experiments)
        )
    return experiments[experiment]
